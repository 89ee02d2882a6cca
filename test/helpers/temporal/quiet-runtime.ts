import { Runtime } from '@temporalio/worker';

// Silences the SDK's log in the output of the tests. A process may install its runtime once, and before the first worker.
Runtime.install({ logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} } });
