// Why an upload whose bytes are all stored is not complete. The retryable ones are tried again, by the queue or after the client
// has sent what is missing; the others end the upload, and are its reason.
import { defineErrors } from '@sluice/base';

export const completionErrors = defineErrors({
  LEASE_HELD: {
    message: (d: { id: string }) => `the upload ${d.id} is being completed by somebody else`,
    retryable: true,
  },
  PART_LOST: {
    message: (d: { id: string; part: number }) =>
      `part ${d.part} of the upload ${d.id} is gone; send its bytes again`,
    retryable: true,
  },
  MULTIPART_LOST: {
    message: (d: { id: string }) =>
      `the store has lost the parts of the upload ${d.id}; send its bytes again`,
    retryable: true,
  },
  PARTS_UNFIT: {
    message: (d: { id: string }) =>
      `the store does not make a file of the parts of the upload ${d.id}, although it has them all; begin a new upload`,
    retryable: false,
  },
  SIZE_MISMATCH: {
    message: (d: { id: string; wanted: number; got: number }) =>
      `the object of the upload ${d.id} has ${d.got} bytes instead of ${d.wanted}; begin a new upload`,
    retryable: false,
  },
  CRC_MISMATCH: {
    message: (d: { id: string; wanted: string; got: string }) =>
      `the object of the upload ${d.id} has the CRC-64/NVME ${d.got}, the bytes that were received have ${d.wanted}; begin a new upload`,
    retryable: false,
  },
  SHA256_MISMATCH: {
    message: (d: { id: string; declared: string; computed: string }) =>
      `the file has the SHA-256 ${d.computed}, declared was ${d.declared}; begin a new upload with the right file or digest`,
    retryable: false,
  },
});
