import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isOfType, listGpus } from '../../../../infra/sandbox/docker/gpu-types.ts';
import { allowedGpus, chooseGpus } from '../../../../infra/sandbox/docker/gpus.ts';

const names = {
  h100: { index: 0, name: 'NVIDIA H100 80GB HBM3', memoryMb: 81_559 },
  h200: { index: 1, name: 'NVIDIA H200', memoryMb: 143_771 },
  a100: { index: 2, name: 'NVIDIA A100-SXM4-40GB', memoryMb: 40_960 },
  rtx: { index: 3, name: 'NVIDIA GeForce RTX 4090', memoryMb: 24_564 },
  l40s: { index: 4, name: 'NVIDIA L40S', memoryMb: 46_068 },
  t4: { index: 5, name: 'Tesla T4', memoryMb: 15_360 },
} as const;

describe('the types of GPUs', () => {
  const types: readonly (readonly [type: string, gpus: readonly (keyof typeof names)[]])[] = [
    ['H100', ['h100']],
    ['nvidia-h100-80gb', ['h100']],
    ['nvidia-h200-141gb', ['h200']],
    ['NVIDIA H200', ['h200']],
    ['A100', ['a100']],
    ['A100-40', ['a100']],
    ['A100_40GB', ['a100']],
    ['A100-80', []],
    ['RTX-4090', ['rtx']],
    ['nvidia-tesla-t4', ['t4']],
    ['L4', []],
    ['L40S', ['l40s']],
    ['80', []],
    ['nvidia', []],
  ];
  for (const [type, expected] of types) {
    it(`are read from the names of the driver: ${type}`, () => {
      const found = Object.entries(names).filter(([, gpu]) => isOfType(gpu, type));
      assert.deepEqual(
        found.map(([name]) => name),
        expected,
      );
    });
  }

  it('decide which GPUs a task gets, or refuse it with the names of those that the host has', () => {
    const gpus = [names.h100, { ...names.a100, index: 1 }, { ...names.h100, index: 2 }];
    assert.deepEqual(allowedGpus({ gpus }, 2, ['T4', 'h100']), { numbers: [0, 2] });
    const refusal = (count: number, types: readonly string[]): string => {
      const found = allowedGpus({ gpus }, count, types);
      return 'refusal' in found ? found.refusal : assert.fail('expected a refusal');
    };
    const host = 'the GPUs of this host are NVIDIA H100 80GB HBM3 (2), NVIDIA A100-SXM4-40GB (1): ';
    const end = ' (environment.gpu_types); use a host with such GPUs';
    assert.equal(refusal(1, ['T4', 'L4']), `${host}none of them is T4 or L4${end}`);
    assert.equal(refusal(2, ['A100']), `${host}only 1 of them is A100${end}`);
    assert.equal(refusal(3, ['H100']), `${host}only 2 of them are H100${end}`);
  });

  it('decide on the devices that are passed through, by CDI or as `docker run --gpus` does', () => {
    const facts = { runtimes: ['nvidia'], devices: [], hasHook: false };
    const devices = [0, 1, 2].map((number) => `nvidia.com/gpu=${number}`);
    assert.deepEqual(chooseGpus({ ...facts, devices }, 1, [2]), {
      request: { Driver: 'cdi', DeviceIDs: ['nvidia.com/gpu=2'] },
    });
    assert.deepEqual(chooseGpus(facts, 1, [1, 2]), {
      request: { Driver: '', DeviceIDs: ['1'], Capabilities: [['gpu']] },
    });
    assert.match(JSON.stringify(chooseGpus({ ...facts, devices }, 1, [7])), /lists only others; use a host with more/);
  });

  it('are what nvidia-smi lists, and unknown without it', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'temper-gpus-'));
    t.after(() => rm(directory, { recursive: true }));
    const program = join(directory, 'nvidia-smi');
    await writeFile(program, "#!/bin/sh\nprintf '0, NVIDIA H100 80GB HBM3, 81559\\n1, Tesla T4, 15360\\n'\n");
    await chmod(program, 0o755);
    const t4 = { ...names.t4, index: 1 };
    assert.deepEqual(await listGpus(program), { gpus: [names.h100, t4] });
    const missing = await listGpus(join(directory, 'none'));
    const found = allowedGpus(missing, 1, ['T4']);
    const refusal =
      /this host does not tell the types of its GPUs \(.*ENOENT\), of which it needs T4 .*; install nvidia-smi/;
    assert.match('refusal' in found ? found.refusal : '', refusal);
  });
});
