// What the server under test does with jobs: those of one queue die, so that there are dead letters to ask for.
export const handlers = {
  default: (): void => {},
  letters: (): never => {
    throw new Error('nobody lives there');
  },
};
