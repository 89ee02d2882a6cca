import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readDockerfile } from '../../../infra/harbor/dockerfile.ts';
import { entrypointOf } from '../../../infra/harbor/entrypoint.ts';

const ofDockerfile = (lines: string) => entrypointOf(undefined, readDockerfile(`FROM a\n${lines}\n`).entrypoint);
const waiting = ['sh', '-c', 'sleep infinity'];

it('is what the last stage of a Dockerfile says, and gets what Harbor runs in a container', () => {
  assert.equal(ofDockerfile('CMD ["nginx"]'), null);
  assert.deepEqual(ofDockerfile('ENTRYPOINT ["/e.sh", "-x"]'), ['/e.sh', '-x', ...waiting]);
  assert.deepEqual(ofDockerfile('ENTRYPOINT ["/e.sh"]\nFROM b\nENTRYPOINT ["/f.sh"]'), ['/f.sh', ...waiting]);
  assert.equal(ofDockerfile('ENTRYPOINT ["/e.sh"]\nFROM b'), null);
  assert.equal(ofDockerfile('ENTRYPOINT ["/e.sh"]\nENTRYPOINT []'), null);
  assert.deepEqual(readDockerfile('FROM a AS one\nENTRYPOINT ["/e.sh"]\nFROM one\n').entrypoint, ['/e.sh']);
});

it('is a text for the shell if it is no list, and none if it is a shell alone', () => {
  assert.deepEqual(ofDockerfile('ENTRYPOINT serve --all'), ['/bin/sh', '-c', 'serve --all']);
  assert.deepEqual(ofDockerfile("ENTRYPOINT ['serve']"), ['/bin/sh', '-c', "['serve']"]);
  assert.equal(ofDockerfile('ENTRYPOINT ["/bin/bash"]'), null);
  assert.equal(ofDockerfile('ENTRYPOINT ["bash", "-c"]'), null);
});

it('is what the task names in its place', () => {
  assert.deepEqual(entrypointOf(['serve'], ['/e.sh']), ['serve']);
  assert.equal(entrypointOf([], ['/e.sh']), null);
});
