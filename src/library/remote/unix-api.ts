/** Declares the library for Unix programs, and holds what of it needs neither a home nor Bun. */

import { statSync } from 'node:fs'
import type { FailureCode } from '../../host/failure.ts'
import type { HostOptions } from '../../host/open/library.ts'
import { composeSystem as compose } from '../../memory/agent-files/compose-system.ts'
import { appendSession, archiveSession, countSession, type Loaded, loadSession } from '../../memory/agent-files/session-file.ts'
import type { Schema } from '../../runtime/port.ts'

export type LlmOptions = HostOptions & {
  /** Replaces the agent's soul; a text, never a path. */
  readonly system?: string
  /** `provider/model` of the configuration. */
  readonly model?: string
  /** Continues the conversation of the agent's session; otherwise a new conversation begins. */
  readonly continue?: boolean
  /** The agent whose soul, session and log are used; default: the configured agent, or "default". */
  readonly agent?: string
  /**
   * The tools that the model may call: `default`, a folder of executables, or a JSON list. Absent: none. The call asks nobody, so it
   * refuses every tool call that needs approval.
   */
  readonly tools?: string
  readonly signal?: AbortSignal
  /** Receives the answer piece by piece as the model writes it. */
  readonly onText?: (piece: string) => void
}

/** `code` names the exit code of the command line (README). A failure may carry a text, for example an answer after a refused tool call. */
export type Answer =
  | { readonly ok: true; readonly text: string; readonly runId: string; readonly conversationId: string }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string; readonly text: string }

export type ToolInfo = { readonly name: string; readonly description: string; readonly parameters: Schema; readonly risk: string }

export type ToolOptions = HostOptions & {
  /** The tools as for `llmCall`; default: the built-in tools and the operator's own. */
  readonly tools?: string
}

/** `denied`: the gate refused the call, or would have had to ask. */
export type ToolRun =
  | { readonly ok: true; readonly output: string }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string }

/**
 * Composes the system prompt of an agent's folder: exactly soul.md when nothing else is there, otherwise also context/*.md by name, pins
 * and summary.
 * @throws Error when the folder does not exist, or its soul cannot be read
 */
export async function composeSystem(folder: string): Promise<string> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`no folder "${folder}"; name that of an agent`)
  const composed = await compose({ folder })
  if (!composed.ok) throw new Error(composed.message)
  return composed.text
}

/**
 * Reads and writes files of {"ts","role","content"} lines. It redacts nothing. All functions throw errno errors, except that a missing file
 * counts as empty.
 */
export const session = {
  /** Appends one line in one write, which is safe beside other writers. It creates the file and its folder when absent. */
  append(file: string, role: string, content: string): void {
    appendSession(file, [{ role, content }], Date.now())
  },
  /** Loads the last `limit` entries, or all without a limit. It skips torn and foreign lines and counts them in `unreadable`. */
  load(file: string, limit?: number): Loaded {
    return loadSession(file, limit)
  },
  count(file: string): number {
    return countSession(file)
  },
  /** Archives the file as `<time>.jsonl` beside it. @returns the path of the archive, undefined when there was no file */
  clear(file: string): string | undefined {
    return archiveSession(file, Date.now())
  },
}
