import assert from 'node:assert/strict';
import { it } from 'node:test';
import { placeableAmong } from '../../../../infra/grading/artifacts/placeable.ts';

it('places no link to a directory of temper’s own, or to one above it', () => {
  const link = (path: string, target: string) =>
    ({
      header: { path, target, type: 'symlink', mode: 0o777, uid: 'agent', gid: 'agent', mtime: new Date(0), size: 0 },
    }) as const;
  const links = [
    link('/logs/agent/a', '/logs'),
    link('/logs/agent/b', 'a/verifier/reward.txt'),
    link('/logs/agent/c', '../verifier'),
    link('/logs/agent/d', '..'),
    link('/logs/agent/e', '../agent/log.txt'),
    link('/logs/agent/f', '/logs/../tests'),
  ];
  const placed = placeableAmong(links, ['/logs']);
  assert.deepEqual(
    placed.map(({ header }) => header.path),
    ['/logs/agent/b', '/logs/agent/e'],
  );
});
