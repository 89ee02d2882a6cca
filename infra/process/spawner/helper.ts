// The helper process: a small program that starts commands for another process, which is its parent. Its whole state is the set of
// commands that it runs. It needs no environment and loads no package, so that a fork of it is cheap.
import { createDirectSpawner } from './direct.ts';
import { type HelperReply, type HelperRequest, toSent } from './messages.ts';
import type { RunningCommand } from './spawner.ts';

const spawner = createDirectSpawner();
const running = new Map<number, RunningCommand>();

// A signal to the whole process group, such as Ctrl-C, lets the parent finish its work first.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

// The parent has ended. The kernel also ends commands that asked for it, but not those that are just starting.
process.on('disconnect', () => {
  for (const command of running.values()) command.kill();
  process.exit();
});

process.on('message', (request: HelperRequest) => {
  const { id } = request;
  if ('kill' in request) return running.get(id)?.kill();
  const reply = 'start' in request ? run(id, request.start) : launch(id, request.launch);
  reply.then(send, (error: unknown) => send({ id, failed: toSent(error) }));
});

async function run(id: number, command: Parameters<typeof spawner.start>[0]): Promise<HelperReply> {
  const started = spawner.start(command);
  running.set(id, started);
  try {
    return { id, ended: await started.ended };
  } finally {
    running.delete(id);
  }
}

async function launch(id: number, program: Parameters<typeof spawner.launch>[0]): Promise<HelperReply> {
  await spawner.launch(program);
  return { id, launched: true };
}

function send(reply: HelperReply): void {
  // A reply that cannot be sent has no reader: the parent has ended, which `disconnect` reports.
  process.send?.(reply, undefined, {}, () => undefined);
}
