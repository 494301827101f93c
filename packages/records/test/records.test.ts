/** The records on the PostgreSQL that comes inside the npm package. */
import { startPostgres } from '@sluice/testbed';
import { recordsSuite } from './recordsSuite.js';

recordsSuite('on the packaged PostgreSQL', startPostgres, false);
