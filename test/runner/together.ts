import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';

/** Runs test files in this one process, each as a suite, so that the modules of the product are loaded once and not for each file. */
export function runTogether(files: readonly string[]): void {
  for (const file of files) {
    describe(file, async () => {
      try {
        await import(pathToFileURL(resolve(file)).href);
      } catch (error) {
        // A suite that fails is not counted.
        it('loads', () => {
          throw error;
        });
      }
    });
  }
}
