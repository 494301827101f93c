/** The records on the PostgreSQL that Debian installs, which is some versions older. */
import { debianPostgres, startDebianPostgres } from '@sluice/testbed';
import { recordsSuite } from './recordsSuite.js';

// Where everything has to be tested, a missing server fails.
const mayBeMissing = process.env['CI'] !== 'true';
const isMissing = debianPostgres() === undefined;
const skip = isMissing && mayBeMissing ? 'Debian’s PostgreSQL is not installed' : false;
recordsSuite('on Debian’s PostgreSQL', startDebianPostgres, skip);
