/** Runs one question several times side by side, each attempt in a copy of the workspace, and keeps what each changed as a change set. */

import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Change, ChangeReview, ChangeSet } from '../../../runtime/changes.ts'
import type { Ending, Usage } from '../../../runtime/event.ts'
import { reviewChanges } from '../../../security/changes/review-changes.ts'
import { createLook } from '../../../workspace/changes/look.ts'
import type { Conversation, Host, Setup } from '../../api.ts'
import { policyOf } from '../../setup/effective-policy.ts'
import { workspaceOf } from '../../setup/workspace-folder.ts'
import { createChangeRules } from '../../transactions/change-rules.ts'
import { changeSetOf } from '../kept-changes.ts'
import { attemptFolders, copyWorkspace, takeChanges } from './workspace-copy.ts'

export type Attempt = {
  readonly number: number
  readonly runId: string
  readonly ending: Ending
  readonly answer: string
  readonly usage?: Usage
  readonly seconds: number
  /** What it changed; absent when it changed nothing. `id` names it in the store, where it waits for a decision. */
  readonly changed?: { readonly id: string; readonly set: ChangeSet; readonly review: ChangeReview }
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

/** All copies are gone when it resolves; the change sets wait in the store of the home. @throws FailureError when nothing can be copied */
export async function runAttempts(attempts: Attempts): Promise<readonly Attempt[]> {
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

async function one(attempts: Attempts, base: string, number: number): Promise<Attempt> {
  const { setup, setupIn, open, run } = attempts
  const workspace = workspaceOf(setup)
  const { copy, set, upper } = attemptFolders(base, number)
  for (const folder of [copy, upper]) mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Whatever changes in the workspace from now on was changed by somebody else.
  writeFileSync(join(set, 'start'), '')
  const before = await copyWorkspace(workspace, copy)
  const conversation = await open(setupIn(copy))
  const began = Date.now()
  const { ending, answer } = await run(conversation, number)
  const seconds = Math.round((Date.now() - began) / 1000)
  await conversation.close()
  const [runId, usage] = [conversation.runId() ?? `attempt-${number}`, conversation.usage()]
  const told = { number, runId, ending, answer, seconds, ...(usage ? { usage } : {}) }
  const changes = ending.code === 'cancelled' ? [] : takeChanges({ workspace, copy, before, upper })
  if (changes.length === 0) return told
  return { ...told, changed: await keep(attempts, { base, set, workspace, changes, runId, conversationId: conversation.id }) }
}

type Keeping = {
  readonly base: string
  readonly set: string
  readonly workspace: string
  readonly changes: readonly Change[]
  readonly runId: string
  readonly conversationId: string
}

/** The whole change set is judged as if one command had made it. */
async function keep({ host, setup, prompt }: Attempts, { base, set, workspace, changes, runId, conversationId }: Keeping) {
  const { config, paths, context } = setup
  const policy = policyOf(config, paths, context.env)
  using look = createLook({ workspace, upper: join(set, 'up'), changes })
  const review = reviewChanges(changes, {
    policy,
    level: 'supervised',
    approved: false,
    look,
    ruled: await createChangeRules(setup)(changes),
  })
  const { store } = await host.changes()
  const id = `attempt-${runId}`
  // Renamed within its file system, so that the mark of the beginning keeps its time; the store links to it.
  const folder = join(dirname(base), id)
  renameSync(set, folder)
  const about = { run: runId, call: 'attempt', conversation: conversationId, tool: 'attempt', command: prompt, at: Date.now() }
  await store.hold(id, { changes, review, about, folder })
  const shown = store.show(id)
  return { id, review, set: shown ? changeSetOf(shown) : { stage: 'made' as const, changes, content: () => undefined } }
}
