// What only tests of reliability need: `npm run chaos` arms the fail points and takes guards out of the scripts, in order to prove
// that its checker would notice. Not part of the API of a queue; may change at any time.
export { armFailPoints, type FailAction } from '@sluice/base';
export { scripts } from './scripts.js';
