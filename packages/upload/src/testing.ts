// What only tests of reliability need: `npm run chaos -- uploads` takes guards out of the scripts, in order to prove that its checker
// would notice. Not part of the API of uploads; may change at any time.
export { scripts } from './scripts.js';
