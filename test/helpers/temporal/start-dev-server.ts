import { startDevServer } from '../../../infra/temporal/server.ts';

/** Starts the server that its argument describes, prints its process id and stays. */
const server = await startDevServer({ ...JSON.parse(process.argv[2] ?? ''), env: process.env });
console.log(server.pid);
