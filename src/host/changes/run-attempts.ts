/** Runs one question several times side by side, each attempt in a copy of the workspace, and keeps what each changed as a change set. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Ending, Usage } from '../../runtime/event.ts'
import type { Conversation, Host, Setup } from '../api.ts'
import { workspaceOf } from '../setup/workspace-folder.ts'
import { attemptFolders, type CopyChanges, copyWorkspace, type KeptCopy, keepCopy, takeChanges } from './workspace-copy.ts'

export type AttemptResult = {
  readonly number: number
  readonly runId: string
  readonly ending: Ending
  readonly answer: string
  readonly usage?: Usage
  readonly seconds: number
  /** Its changes; absent when it changed nothing. `id` names them in the store, where they wait for a decision. */
  readonly changed?: KeptCopy
}

export type Attempts = {
  readonly host: Host
  readonly setup: Setup
  readonly prompt: string
  readonly count: number
  /** Returns the setup of an attempt, whose workspace is this copy. */
  readonly setupIn: (copy: string) => Setup
  readonly open: (setup: Setup) => Promise<Conversation>
  readonly run: (conversation: Conversation, number: number) => Promise<{ readonly ending: Ending; readonly answer: string }>
}

/** Removes all copies before it resolves; the change sets wait in the store of the home. @throws FailureError when nothing can be copied */
export async function runAttempts(attempts: Attempts): Promise<readonly AttemptResult[]> {
  const { setup, count } = attempts
  const { env, home } = setup.context
  // Our home itself is closed to tools, so the copies lie elsewhere.
  const cache = join(env.XDG_CACHE_HOME || join(env.HOME ?? home, '.cache'), 'braidclaw')
  mkdirSync(cache, { recursive: true, mode: 0o700 })
  const base = realpathSync(mkdtempSync(join(cache, 'attempts-')))
  try {
    return await Promise.all(Array.from({ length: count }, (_, at) => one(attempts, base, at + 1)))
  } finally {
    rmSync(base, { recursive: true, force: true })
    const { store } = await attempts.host.changes()
    for (let number = 1; number <= count; number++) await store.forgetWorkspace(attemptFolders(base, number).copy)
  }
}

async function one(attempts: Attempts, base: string, number: number): Promise<AttemptResult> {
  const { setup, setupIn, open, run } = attempts
  const workspace = workspaceOf(setup)
  const { copy, set, upper } = attemptFolders(base, number)
  for (const folder of [copy, upper]) mkdirSync(folder, { recursive: true, mode: 0o700 })
  // A change in the workspace from now on was made by somebody else.
  writeFileSync(join(set, 'start'), '')
  const before = await copyWorkspace(workspace, copy)
  const conversation = await open(setupIn(copy))
  const began = Date.now()
  const { ending, answer } = await run(conversation, number)
  const seconds = Math.round((Date.now() - began) / 1000)
  await conversation.close()
  const [runId, usage] = [conversation.runId() ?? `attempt-${number}`, conversation.usage()]
  const attempt = { number, runId, ending, answer, seconds, usage }
  const changes = ending.code === 'cancelled' ? [] : await takeChanges({ workspace, copy, before, upper })
  if (changes.length === 0) return attempt
  return { ...attempt, changed: await keep(attempts, { base, set, workspace, changes, runId, conversationId: conversation.id }) }
}

type AttemptChanges = Pick<CopyChanges, 'base' | 'set' | 'workspace' | 'changes'> & {
  readonly runId: string
  readonly conversationId: string
}

function keep({ host, setup, prompt }: Attempts, { runId, conversationId, ...made }: AttemptChanges): Promise<KeptCopy> {
  const about = { run: runId, call: 'attempt', conversation: conversationId, tool: 'attempt', command: prompt }
  return keepCopy({ ...made, host, setup, id: `attempt-${runId}`, about })
}
