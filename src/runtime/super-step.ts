/** Computes one super-step of a run: the selected events, what a consumer may see, and what must be on disk before any takes effect. */

import type { Rejection } from '../kernel/select.ts'
import type { AnyThread } from '../kernel/thread.ts'
import type { AgentEvent, ExternalEvent, RunEvent } from './event.ts'
import type { Clock, RecordEntry } from './port.ts'
import { digestLines, type Projected, project, projection } from './project.ts'
import { createProgram } from './threads/run-to-rest.ts'

export type SelectedEvent = { readonly event: RunEvent; readonly shown: readonly AgentEvent[] }

export type SuperStep = {
  /** In order of selection. */
  readonly selected: readonly SelectedEvent[]
  readonly batch: readonly RecordEntry[]
  readonly rejected: readonly Rejection<RunEvent>[]
}

export type StepperOptions = {
  readonly runId: string
  readonly threads: readonly AnyThread<RunEvent>[]
  /** Finds the thread that a `thread.add` names. */
  readonly threadOf: (name: string) => AnyThread<RunEvent> | undefined
  readonly now: Clock
  readonly approvalTtlMs: number
}

/** @returns a function that feeds external events to the threads; it throws LivelockError and whatever one of our own threads throws */
export function createStepper({
  runId,
  threads,
  threadOf,
  now,
  approvalTtlMs,
}: StepperOptions): (events: readonly ExternalEvent[]) => SuperStep {
  let batch: RecordEntry[] = []
  let seen: Projected = projection(runId)
  const digest = new Bun.CryptoHasher('sha256')
  // The kernel admits only external events, and no thread creates one.
  const program = createProgram({
    threads,
    threadOf,
    onExternal: (event) => void batch.push({ kind: 'external', event: event as ExternalEvent }),
  })

  function entryOf(event: RunEvent): RecordEntry | undefined {
    if (event.type === 'act') return { kind: 'intent', act: event }
    if (event.type === 'deny') return { kind: 'denied', deny: event }
    if (event.type === 'apply') return { kind: 'apply', apply: event }
    if (event.type === 'drop') return { kind: 'dropped', drop: event }
    if (event.type === 'gate.open') return { kind: 'gate', gate: event, expires: now() + approvalTtlMs }
    if (event.type === 'finish') return { kind: 'finish', finish: event, digest: digest.digest('hex') }
  }

  return (events) => {
    const selected: SelectedEvent[] = []
    batch = []
    const rejected: Rejection<RunEvent>[] = []
    const onSelect = (event: RunEvent, blockers: string) => {
      seen = project(seen, event, blockers)
      for (const line of digestLines(event, seen)) digest.update(line)
      selected.push({ event, shown: seen.events })
      const entry = entryOf(event)
      if (entry) batch.push(entry)
    }
    for (const event of events) {
      const by = program.take(event, onSelect)
      if (by !== undefined) rejected.push({ event, by })
    }
    return { selected, batch, rejected }
  }
}
