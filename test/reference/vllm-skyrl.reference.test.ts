import { after } from 'node:test';
import { createVllmEngine } from '../../infra/engine/vllm.ts';
import { createTinkerTrainer } from '../../infra/trainer/tinker.ts';
import { testAdapters } from './adapters.ts';
import { testRendering } from './rendering.ts';
import { openReferenceStack, type ReferenceStack } from './stack.ts';

let opened: Promise<ReferenceStack> | null = null;
/** Opens the stack once for all suites, since a start takes minutes. */
const open = (): Promise<ReferenceStack> => {
  opened ??= openReferenceStack();
  return opened;
};
after(async () => (await opened)?.close());

testAdapters('a real vLLM and a real SkyRL', async () => {
  const stack = await open();
  const engine = () => createVllmEngine({ url: stack.vllmUrl, model: stack.vllmModel, method: 'lora' });
  const { version } = await engine().health();
  return {
    engine,
    trainer: () =>
      createTinkerTrainer({
        url: stack.skyrlUrl,
        baseModel: stack.skyrlModel,
        reduction: 'datum-mean',
        checkpointsDir: stack.checkpoints,
        engineCheckpointsDir: stack.checkpointsInside,
      }),
    method: 'lora',
    tolerance: 1e-4,
    tokens: [151644, 872, 198, 2610, 5046, 23556, 13, 15483, 25, 27023, 11, 4499],
    firstVersion: (version ?? 0) + 1,
    close: async () => {},
  };
});

testRendering(open);
