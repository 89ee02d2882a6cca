import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import Docker from 'dockerode';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import type { Sandbox } from '../../infra/sandbox/sandbox.ts';
import {
  buildImage,
  checkElsewhere,
  checkPreloading,
  elsewhere,
  preloading,
  removeImage,
  specOf,
} from './odd-images.ts';
import {
  hookedSuite,
  hookingImage,
  plantedForHooks,
  plantedImage,
  plantedInPath,
  plantedSuite,
} from './planted-suite.ts';

describe('in Docker', () => {
  const images: string[] = [];
  const build = async (name: string, dockerfile: string): Promise<string> => {
    const image = await buildImage(name, dockerfile);
    images.push(image);
    return image;
  };
  after(async () => {
    for (const image of images) await removeImage(image);
  });

  plantedSuite('docker', plantedInPath, { image: () => build('path', plantedImage) });
  plantedSuite('docker', plantedForHooks, { image: async () => 'temper-tasks:bookworm' });

  hookedSuite(() => build('hooking', hookingImage));

  describe("temper's own programs", () => {
    const stack = `own-programs-${process.pid}`;
    const provider = createDockerProvider({ stack });
    const made: string[] = [];
    const make = (image: string): Promise<Sandbox> => {
      const name = `${stack}-${made.length}`;
      made.push(name);
      return provider.ensure(specOf(image, stack, name), new AbortController().signal);
    };
    after(async () => {
      for (const name of made) await provider.remove(name);
      await provider.close();
    });

    it('are found in an image that has them only where its PATH leads', async () => {
      await checkElsewhere(await make(await build('elsewhere', elsewhere)));
    });

    it('run without the variables of an image that has programs load files of the agent', async () => {
      const { name } = await make(await build('preloading', preloading));
      const sandbox = await provider.attach(name);
      assert.ok(sandbox !== undefined);
      await checkPreloading(sandbox);
      // What runs for as long as the container must not have loaded such a file, either.
      const { State } = await new Docker().getContainer(name).inspect();
      assert.equal(State.Running, true);
      const argv = [
        'bash',
        '-c',
        'for p in /proc/[0-9]*; do grep -qs hook "$p/maps" && echo "$p"; done; true',
      ] as const;
      const limits = { cwd: '/', env: {}, timeoutMs: 60_000, maxOutputBytes: 2 ** 16 } as const;
      const { stdout } = await sandbox.exec(
        { ...limits, account: 'grader', argv: [...argv] },
        new AbortController().signal,
      );
      assert.equal(String(stdout), '');
    });
  });
});
