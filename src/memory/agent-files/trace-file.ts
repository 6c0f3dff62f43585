/** Appends to an agent's log, agent.jsonl: one {"ts","agent","event","message"} per line. */

import { appendText, timestamp } from './append-line.ts'

export type Trace = { readonly agent: string; readonly event: string; readonly message: string }

/** @throws errno errors */
export function appendTrace(file: string, { agent, event, message }: Trace, at: number): void {
  appendText(file, `${JSON.stringify({ ts: timestamp(at), agent, event, message: message.toWellFormed() })}\n`)
}
