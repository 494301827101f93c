// @sluice/postgres: the programs of PostgreSQL, and the way to run them.
export { packagedPrograms, preparePrograms } from './programs.js';
export type { RunProgram, Spawn } from './programs.js';
export { postgresErrors } from './errors.js';
