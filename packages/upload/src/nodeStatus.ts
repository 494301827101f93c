// A file says that it is being uploaded as soon as bytes of it have come and more are to come. It is only told: nothing depends on
// it, so a database that is away is no reason to refuse bytes. Whoever looks after the upload tells it again.
import { isSluiceError } from '@sluice/base';
import type { Engine } from './engine.js';
import type { State } from './state.js';

export async function tellUploading(engine: Engine, { id, nodeId }: State): Promise<void> {
  try {
    await engine.records.nodes.markUploading(nodeId);
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    engine.logger.warn({ err: error, upload: id }, 'a file could not be marked as being uploaded yet');
  }
}
