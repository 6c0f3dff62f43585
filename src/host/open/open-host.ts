/** Implements `openHost`: it opens a home once per process and the conversations in it. */

import { join } from 'node:path'
import { within } from '../../kit/abort.ts'
import { atAsyncEnd } from '../../kit/errors.ts'
import { lazy } from '../../kit/lazy.ts'
import { namesIn } from '../../kit/proc.ts'
import type { Recovery } from '../../memory/recovery/interrupted-runs.ts'
import { watchStop } from '../../service/stop-file.ts'
import { narrowSetup } from '../access/channel-profile.ts'
import type { Conversation, ConversationChoice, ConversationOptions, Host, KeptChanges, Setup } from '../api.ts'
import { createRecord, receiptPaths, recoverRecord } from '../records/integrity/create-record.ts'
import { type OpenConversation, openConversation } from '../run/conversation.ts'
import { latestElsewhere, resolveConversation } from '../run/find-conversation.ts'
import { preconnect, withFoundModels } from '../setup/provider-pool.ts'
import { warnOfWeakKeys } from '../setup/setup.ts'
import { type Home, openHome } from './open-home.ts'
import { openRecords, toFailure } from './open-records.ts'

/** How long `close` waits for running turns by default, in milliseconds. */
const usualGraceMs = 3_000

/** `ahead`: connect to the configured provider at once; false when another provider will answer. */
export type OpenHostOptions = { readonly ahead?: boolean }

/**
 * Opens a host. Further calls for the same home share its database, writer, stop watcher, sandboxes and, for equal settings, provider,
 * policy and rules.
 * @throws FailureError when the record cannot be used; the message says what to do
 */
export async function openHost(given: Setup, { ahead = true }: OpenHostOptions = {}): Promise<Host> {
  const { config, log } = given
  if (ahead) preconnect(given)
  log('info', 'startup')
  log('info', 'config path', { path: given.file ?? 'none' })
  log('info', 'workspace path', { path: config.workspaceDir })
  const recovered: { last?: Recovery | undefined } = {}
  const home = await homeOf(given, (recovery) => {
    recovered.last = recovery
  })
  const { setup } = home.services.profiles.of(given)
  const open = new Set<OpenConversation>()
  const closing = { over: false }
  const hostClosed = new AbortController()
  warnOfWeakKeys(setup)

  const stopListening = home.onStop((reason) => {
    log('warn', 'estop triggered', { reason })
    for (const { stop } of open) stop(reason)
  })

  // Looked for before this process makes a sandbox: a process that was killed between two turns may have left the view of a command.
  const hasViews = namesIn(join(setup.paths.home, 'run')).some((name) => /^(?:sandbox|tx)-/.test(name))
  /** After a crash the changes of its commands are settled before anything else runs. */
  const settled = lazy(async () => {
    const isLeft = async () => hasViews && (await import('../../sandbox/private-folder.ts')).hasLeftovers(setup.paths.home)
    if ((recovered.last === undefined || !hasLeft(recovered.last)) && !(await isLeft())) return
    const { settleChanges } = await keptChanges()
    await settleChanges(setup, home.record)
  })

  const conversation: Host['conversation'] = async (which, { setup: other = setup, ...options }) => {
    if (!options.provider && other !== setup && other !== given) preconnect(other)
    const known = options.provider ? other : await withFoundModels(other)
    const profile = home.services.profiles.of(narrowSetup(known, options.access))
    try {
      await settled.get()
      const made = await openConversation({ home, profile, which, options, schedules: schedules.get, closed: () => void open.delete(made) })
      open.add(made)
      return made.conversation
    } catch (error) {
      throw toFailure(home.memory, error)
    }
  }

  async function close(graceMs = usualGraceMs): Promise<void> {
    if (closing.over) return
    closing.over = true
    hostClosed.abort()
    await within(graceMs, Promise.all([...open].map((each) => each.conversation.close())))
    stopListening()
    home.release()
  }

  const changes = lazy(async (): Promise<KeptChanges> => {
    const { openKeptChanges, withReceipt } = await keptChanges()
    return {
      store: await openKeptChanges(setup, async (use) => use(home.memory)),
      withReceipt: (what, act) => withReceipt(home.record, what, act),
    }
  })

  const schedules = lazy(async () => {
    const { openSchedules } = await import('../schedules/schedules.ts')
    return openSchedules(setup, home.memory, home.services.events.committed)
  })

  const records = lazy(async () => {
    const { approvals, events } = home.services
    const written = () => {
      events.committed()
      approvals.readAnswers()
    }
    const asking = (id: string) => [...open].map((each) => each.conversation).find((each) => each.gate(id) !== undefined)
    const live = { asking, written }
    const [{ createRecords }] = await Promise.all([import('../records/records.ts'), settled.get(), home.record.prepare()])
    return createRecords({ setup, memory: home.memory, record: home.record, live })
  })

  return {
    setup,
    conversation,
    records: records.get,
    changes: changes.get,
    events: home.services.events.of(hostClosed.signal),
    schedules: schedules.get,
    questions: home.services.approvals.open,
    async replay(ref, threads) {
      const { replayWith } = await import('../records/integrity/run-again.ts')
      return replayWith({ setup, memory: home.memory, ref, threads })
    },
    tokens: home.memory.tokens,
    replies: home.memory.replies,
    receipts: () => home.memory.checkpoint.get(),
    cancelRun(runId, by) {
      const found = [...open].find(({ conversation: each }) => each.runId() === runId && each.ending() === undefined)
      found?.conversation.cancel(by)
      return found !== undefined
    },
    jobs: (id) =>
      [...open]
        .flatMap(({ conversation }) => (conversation.id === id ? (conversation.jobs() ?? []) : []))
        .find((jobs) => jobs.list().length > 0),
    resolveConversation: (ref) => resolveConversation(home.memory, ref),
    hasConversation: home.memory.conversations.has,
    async telemetry(version) {
      const { openTelemetry } = await import('../events/telemetry/open-telemetry.ts')
      const { events, poll, turns, approvals } = home.services
      return openTelemetry({
        setup,
        memory: home.memory,
        events: events.of(hostClosed.signal),
        receipts: receiptPaths(setup),
        poll,
        turns: turns.depth,
        questions: approvals.open,
        version,
        signal: hostClosed.signal,
      })
    },
    async cost(query) {
      const { costOf } = await import('../access/cost/cost.ts')
      return costOf(home.memory, setup, query)
    },
    latestElsewhere: (folder) => latestElsewhere(home.memory, folder),
    close,
  }
}

/** Opens a host for one conversation and closes both when `use` has ended. @throws what openHost and conversation throw */
export async function withConversation<T>(
  { setup, which, ...options }: ConversationOptions & { readonly setup: Setup; readonly which: ConversationChoice },
  use: (conversation: Conversation, host: Host) => Promise<T>,
): Promise<T> {
  const host = await openHost(setup, { ahead: options.provider === undefined })
  await using _end = atAsyncEnd(() => host.close())
  return await use(await host.conversation(which, options), host)
}

const keptChanges = () => import('../records/integrity/open-kept-changes.ts')

/** A dead process may have left private views of the workspace, or a change set half applied. */
function hasLeft({ interrupted, closedRuns, undecided }: Recovery): boolean {
  return interrupted.length + closedRuns.length + undecided.length > 0
}

/** Returns one home for all setups with the same files. @throws FailureError when its record cannot be used */
function homeOf(setup: Setup, onRecovery: (recovery?: Recovery) => void): Promise<Home> {
  const { config, paths } = setup
  return openHome({
    database: config.memory.path,
    estop: paths.estop,
    key: `${paths.estop} ${config.receipts.enabled ? config.receipts.path : ''}`,
    redactor: ({ profiles }) => profiles.of(setup).setup.redactor,
    watchStop: (onStop) => watchStop(paths.estop, onStop),
    open(redact) {
      const memory = openRecords(setup)
      return { memory, record: createRecord({ ...setup, redact }, memory) }
    },
    recover: async (record) => onRecovery(await recoverRecord(setup, record)),
  })
}
