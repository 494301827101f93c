/**
 * Makes a certificate for a TLS server on the loopback interface. It is self-signed, so that it is at the same
 * time the authority a client has to trust. It lives as long as the test's folder.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Certificate {
  certFile: string;
  keyFile: string;
  /** What a client passes as `ca`. */
  ca: string;
}

export async function makeCertificate(folder: string): Promise<Certificate> {
  const certFile = join(folder, 'server.crt');
  const keyFile = join(folder, 'server.key');
  const request = ['req', '-x509', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  await promisify(execFile)('openssl', [...request, ...key, ...names, '-keyout', keyFile, '-out', certFile]);
  return { certFile, keyFile, ca: await readFile(certFile, 'utf8') };
}
