/** The records on the PostgreSQL that Debian installs, which is some versions older. */
import { debianPostgres, startDebianPostgres } from '@sluice/testbed';
import { recordsSuite } from './recordsSuite.js';

const missing = debianPostgres() === undefined ? 'Debian’s PostgreSQL is not installed' : false;
recordsSuite('on Debian’s PostgreSQL', startDebianPostgres, missing);
