import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import { loadImages, programsImage } from '../helpers/kubernetes/cluster.ts';
import { testNamespace } from '../helpers/kubernetes/namespace.ts';
import { buildImage, checkElsewhere, elsewhere, preloading, removeImage, specOf } from './odd-images.ts';
import { plantedImage, plantedInPath, plantedSuite } from './planted-suite.ts';

describe('in a cluster', async () => {
  const namespace = await testNamespace('planted');
  const open = (stack: string) =>
    createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 });
  const images: string[] = [];
  const load = async (name: string, dockerfile: string): Promise<string> => {
    const image = await buildImage(name, dockerfile);
    images.push(image);
    await loadImages(image);
    return image;
  };
  after(async () => {
    for (const image of images) await removeImage(image);
  });

  plantedSuite('kubernetes', plantedInPath, { image: () => load('path', plantedImage), open });

  describe("temper's own programs", () => {
    const stack = `own-programs-${process.pid}`;
    const provider = open(stack);
    const { signal } = new AbortController();
    after(() => provider.close());

    it('are found in an image that has them only where its PATH leads', async () => {
      const spec = specOf(await load('elsewhere', elsewhere), stack, `${stack}-elsewhere`);
      await checkElsewhere(await provider.ensure(spec, signal));
      await provider.remove(spec.name);
    });

    it('do not run in an image that has them load a file of the agent, whose task is refused', async () => {
      const spec = specOf(await load('preloading', preloading), stack, `${stack}-preloading`);
      const command = { account: 'agent', argv: ['true'], env: {}, timeoutMs: 60_000, maxOutputBytes: 0 } as const;
      const refused = provider.ensure(spec, signal).then((sandbox) => sandbox.exec(command, signal));
      await assert.rejects(refused, { type: 'UnsupportedTask', message: /LD_PRELOAD.* \/workspace\/hook\.so/ });
      await provider.remove(spec.name);
    });
  });
});
