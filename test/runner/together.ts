import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';

// Runs the test files that its arguments name in this one process, each as a suite, so that the modules of the product are loaded
// once and not for each file.
for (const file of process.argv.slice(2)) {
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
