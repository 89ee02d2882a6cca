#!/usr/bin/env node
// Says by its exit code whether `temper up` of this container runs all of its parts: the health check of the image.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(process.env.TEMPER_HOME, 'up.json');
try {
  const { state, parts } = JSON.parse(readFileSync(file, 'utf8'));
  const idle = parts.filter((part) => part.state !== 'running').map(({ name, state }) => `${name} is ${state}`);
  if (state !== 'running') idle.unshift(`the stack is ${state}`);
  console.log(idle.length === 0 ? `${parts.length} parts run` : idle.join(', '));
  process.exitCode = idle.length === 0 ? 0 : 1;
} catch (error) {
  console.log(`expected a running stack in ${file}: ${error.message}`);
  process.exitCode = 1;
}
