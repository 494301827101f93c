// @sluice/store: object storage, one contract, S3 and local disk.
export type {
  Body,
  Capabilities,
  CompleteOptions,
  GetOptions,
  ListPage,
  Multipart,
  ObjectInfo,
  ObjectRead,
  ObjectStore,
  PutOptions,
  StoredPart,
} from './contract.js';
export {
  combineCrc64,
  crc64,
  crc64FromBase64,
  crc64FromHex,
  crc64ToBase64,
  crc64ToHex,
  RunningCrc64,
} from './crc64.js';
export { DiskStore, type DiskStoreOptions } from './disk.js';
export { type StoreError, storeErrors } from './errors.js';
export { S3Store, s3Limits, type S3StoreOptions } from './s3.js';
export type { S3ClientOptions, S3Credentials } from './s3Client.js';
