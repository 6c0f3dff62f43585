/** For tests and benchmarks: a memory in a fresh folder, and the events of a small run. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Call, ExternalEvent, InternalEvent, Judgement, Part } from '../runtime/event.ts'
import type { RunIdentity } from '../runtime/port.ts'
import { type Memory, openMemory } from './db.ts'

export type Desk = {
  readonly folder: string
  readonly path: string
  readonly memory: Memory
  readonly clock: { now: number }
  remove(): void
}

/** 2026-05-12T12:00:00Z */
export const noon = 1_778_587_200_000

/** Each look at its clock is a millisecond later. */
export function createDesk(folder = mkdtempSync(join(tmpdir(), 'braidclaw-memory-'))): Desk {
  const path = join(folder, 'home', 'memory.sqlite')
  const clock = { now: noon }
  const opened = openMemory({ path, log: () => {}, now: () => clock.now++ })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { memory } = opened
  const remove = () => {
    memory.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { folder, path, memory, clock, remove }
}

export function runOf(number: number, own: Partial<RunIdentity> = {}): RunIdentity {
  const ids = { runId: `run-${number}`, conversationId: 'conversation-1', turnId: `turn-${number}` }
  return { ...ids, provider: 'mock', model: 'mock-1', channel: 'cli', ...own }
}

export const judgement: Judgement = {
  verdict: 'allow',
  risk: 'low',
  rule: 'read',
  reason: 'inside the workspace',
  plan: 'plan-1',
  summary: 'file_read a.txt',
  writes: [],
}

export function callOf(id: string, input: Call['input'] = { path: 'a.txt' }): Call {
  return { id, name: 'file_read', input }
}

export function started(prompt: string): ExternalEvent {
  return { type: 'run.start', prompt, mode: 'structured', at: noon, model: 'mock-1' }
}

export function replied(parts: readonly Part[]): ExternalEvent {
  const proposals = parts.flatMap((part) => (part.type === 'call' ? [{ call: part, judgement }] : []))
  return { type: 'model.done', parts, proposals, usage: { inputTokens: 3, outputTokens: 5 }, model: 'mock-2' }
}

export function acting(call: Call, approval?: string): Extract<InternalEvent, { type: 'act' }> {
  return { type: 'act', id: call.id, call, judgement, ...(approval ? { approval } : {}) }
}

export function refusing(call: Call): Extract<InternalEvent, { type: 'deny' }> {
  return {
    type: 'deny',
    id: call.id,
    call,
    judgement: { ...judgement, verdict: 'deny', risk: 'high' },
    by: 'safety',
    reason: 'outside the workspace',
  }
}

export const finish: Extract<InternalEvent, { type: 'finish' }> = {
  type: 'finish',
  ending: { stop: 'end_turn', code: 'answered', message: 'done' },
}
