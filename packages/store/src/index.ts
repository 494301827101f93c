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
