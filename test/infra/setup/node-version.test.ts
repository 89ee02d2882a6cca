import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { fetchedNode, minimumNode } from '../../../infra/setup/node-runtime.mjs';
import { readSource, repositoryRoot } from '../../helpers/sources.ts';

const manifest = z.object({
  engines: z.object({ node: z.string() }),
  devDependencies: z.record(z.string(), z.string()),
});
const lock = z.object({
  packages: z.record(z.string(), z.looseObject({ engines: z.looseObject({ node: z.string().optional() }).optional() })),
});

const major = fetchedNode.split('.')[0] ?? '';
const numberOf = (version: string): number => {
  const [first = 0, second = 0] = version.split('.').map(Number);
  return first * 1000 + second;
};

describe('Node', () => {
  it('has one major version in the image, in CI, in its types and where an older one is replaced', () => {
    const { devDependencies } = manifest.parse(JSON.parse(readSource('package.json')));
    assert.equal(devDependencies['@types/node'], major);
    const [, image] = /^ARG BASE=node:(\d+)-/m.exec(readSource('infra/deploy/image/Dockerfile')) ?? [];
    const ci = [...readSource('.github/workflows/ci.yml').matchAll(/node-version: (\S+)/g)].map(
      ([, version]) => version,
    );
    assert.deepEqual(new Set([image, ...ci]), new Set([major]));
    assert.ok(numberOf(fetchedNode) >= numberOf(minimumNode));
  });

  it('has one oldest version, with which npm warns of no package', () => {
    const { engines } = manifest.parse(JSON.parse(readSource('package.json')));
    assert.equal(engines.node, `>=${minimumNode}`);
    const agents = readdirSync(join(repositoryRoot, 'infra/agents')).map((name) => `infra/agents/${name}`);
    const locks = ['.', ...agents].map((folder) => join(folder, 'package-lock.json'));
    for (const file of locks.filter((path) => existsSync(join(repositoryRoot, path)))) {
      for (const [name, { engines: wanted }] of Object.entries(lock.parse(JSON.parse(readSource(file))).packages)) {
        // The last alternative is that of the newest versions.
        const [, least] = /(\d+(?:\.\d+)?)[^|]*$/.exec(wanted?.node ?? '') ?? [];
        assert.ok(numberOf(least ?? '0') <= numberOf(minimumNode), `${file}: ${name} wants Node ${wanted?.node}`);
      }
    }
  });
});
