import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { bundleCode, locateWorkflowBundle } from '../../../infra/temporal/bundle.ts';

describe('the workflow bundle', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-bundle-'));
  });
  after(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  it('is built once per state of the sources, even for concurrent requests', async () => {
    const env = { XDG_CACHE_HOME: directory };
    const said: string[] = [];
    const [first, second] = await Promise.all([
      locateWorkflowBundle(env, (line) => said.push(line)),
      locateWorkflowBundle(env, (line) => said.push(line)),
    ]);
    assert.equal(first.codePath, second.codePath);
    assert.deepEqual(said, ['bundling the workflows']);
    const { ino } = await stat(first.codePath);
    await locateWorkflowBundle(env, (line) => said.push(line));
    assert.deepEqual([said.length, (await stat(first.codePath)).ino], [1, ino]);
  });

  for (const module of ['node:fs', 'undici', 'dockerode']) {
    it(`rejects workflow code that imports ${module}, and says why`, async () => {
      // The directory is inside the checkout, so that the package itself is found.
      const scratch = await mkdtemp(join(import.meta.dirname, 'fixture-'));
      const workflows = join(scratch, 'index.ts');
      try {
        await writeFile(
          workflows,
          `import * as io from '${module}';\nexport async function leak() {\n  return Object.keys(io);\n}\n`,
        );
        await assert.rejects(
          bundleCode(workflows),
          (error: Error) =>
            /expected .*index\.ts to bundle/.test(error.message) && /ERROR in|disallowed modules/.test(error.message),
        );
      } finally {
        await rm(scratch, { recursive: true, force: true });
      }
    });
  }
});
