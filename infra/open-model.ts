import { TemperFailure } from '../workflows/contracts/failures.ts';
import { InvalidModelDirectory, loadModel, type Model } from './kits/chat-tokens/index.ts';

/** Loads a stack's model directory. Throws TemperFailure InvalidInput, which names the file that is missing or invalid. */
export async function openModel(dir: string): Promise<Model> {
  try {
    return await loadModel(dir);
  } catch (error) {
    if (error instanceof InvalidModelDirectory)
      throw new TemperFailure('InvalidInput', error.message, { cause: error });
    throw error;
  }
}
