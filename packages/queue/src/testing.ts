// What only tests of reliability need: `npm run chaos` arms the fail points and takes guards out of the scripts, in order to prove
// that its checker would notice. Not part of the API of a queue; may change at any time.
export { armFailPoints } from './failPoint.js';
export type { FailAction } from './failPoint.js';
export { scripts } from './scripts.js';
