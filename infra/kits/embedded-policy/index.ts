/** A small transformer that trains and samples on any machine, behind the wires of vLLM and of the Tinker API. */
export { type PolicyServer, type PolicyServerOptions, startPolicyServer } from './server/start.ts';
