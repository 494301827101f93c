/*
 * The server of `tus`: `tusServerMain.js <JSON of the S3 server and the settings>` listens on a free port and sends it to
 * its parent.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { S3Store } from '@tus/s3-store';
import { Server } from '@tus/server';
import { s3Config, type S3Access } from './s3Server.js';
import { TUS_PATH, type TusSettings } from './tusSettings.js';
import { endWithParent } from '../booth.js';

const { s3, settings } = JSON.parse(process.argv[2]!) as { s3: S3Access; settings: TusSettings };

const datastore = new S3Store({
  partSize: settings.partBytes,
  maxConcurrentPartUploads: settings.partsAtOnce,
  s3ClientConfig: {
    ...s3Config(s3),
    bucket: s3.bucket,
    requestChecksumCalculation: settings.checksums,
  },
});
const tus = new Server({ path: TUS_PATH, datastore });
const server = createServer((request, response) => void tus.handle(request, response));

endWithParent();
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
