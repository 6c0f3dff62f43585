#!/usr/bin/env bun
/**
 * One program that takes turn after turn with tools in one conversation, and says how large it is: `bun test/crash/soak.ts [TURNS]`, default
 * 10,000. Prints one JSON line a sample, {"turn","rss","ms"}, in bytes and milliseconds since the start; at the end {"ratio"}.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import type { ModelPiece } from '../../src/providers/model-call.ts'

export type Sample = { readonly turn: number; readonly rss: number; readonly ms: number }

async function soak(turns: number): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-soak-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'notes.txt'), 'a line of notes about aardvarks\n'.repeat(60))
  // A short memory is full soon: what grows after that is a leak.
  const env = { HOME: dir, BRAIDCLAW_LIMITS_CONTEXT_TOKENS: '16000' }
  const agent = createAgent({ cwd, home: join(dir, 'home'), env, modelCall: model, permissionMode: 'full' })
  const samples: Sample[] = []
  try {
    for (let turn = 1; turn <= turns; turn += 1) {
      for await (const _ of agent.run(`question ${turn} about aardvarks`));
      const code = agent.ending()?.code
      if (code !== 'answered') throw new Error(`turn ${turn} ended ${code}: ${agent.ending()?.message}`)
      if (turn % 5 === 0) samples.push(sampled(turn))
    }
  } finally {
    await agent.close()
    rmSync(dir, { recursive: true, force: true })
  }
  for (const sample of samples) console.log(JSON.stringify(sample))
  // Until about turn 900 the bounded caches (1,000 plans, compiled statements) are still filling; `sizeAt` looks at the turns from 900 to 1,200.
  const early = Math.round(turns >= 2_400 ? 1_200 : turns * 0.5)
  console.log(JSON.stringify({ ratio: ratioOf(samples, early), early: sizeAt(samples, early), end: sizeAt(samples, turns) }))
}

const begin = performance.now()

/** Collects first: how late the collector is depends on what else the machine does. */
function sampled(turn: number): Sample {
  Bun.gc(true)
  return { turn, rss: process.memoryUsage.rss(), ms: Math.round(performance.now() - begin) }
}

/** Reads, writes, looks back, runs a command now and then, and answers. */
async function* model(messages: Parameters<ModelCall>[0]): AsyncGenerator<ModelPiece> {
  const last = messages.at(-1)
  if (last?.role === 'tool') {
    yield { type: 'text', content: `noted: ${last.content.slice(0, 200)}` }
    return
  }
  const turn = Number(/\d+/.exec(last?.role === 'user' ? last.content : '')?.[0])
  yield { type: 'tool_use', name: 'file_read', input: { path: 'notes.txt' } }
  yield { type: 'tool_use', name: 'file_write', input: { path: `out-${turn % 7}.txt`, content: `turn ${turn}` } }
  yield { type: 'tool_use', name: 'memory_search', input: { query: `question ${turn - 1}` } }
  if (turn % 20 === 0) yield { type: 'tool_use', name: 'shell', input: { command: 'echo $((6 * 7))' } }
  if (turn % 30 === 0) yield { type: 'tool_use', name: 'file_read', input: { path: '/etc/passwd' } }
}

/** The median of the samples in the last quarter of the way to a turn: the collector's saw teeth are no growth. */
export function sizeAt(samples: readonly Sample[], turn: number): number {
  const near = samples.filter((sample) => sample.turn <= turn && sample.turn > turn * 0.75).map(({ rss }) => rss)
  return near.sort((a, b) => a - b)[Math.floor(near.length / 2)] ?? 0
}

/** How much larger at the end than at turn `early`. */
export function ratioOf(samples: readonly Sample[], early: number): number {
  return sizeAt(samples, samples.at(-1)?.turn ?? 0) / sizeAt(samples, early)
}

if (import.meta.main) await soak(Number(Bun.argv[2] ?? 10_000))
