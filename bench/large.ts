#!/usr/bin/env bun

/**
 * A home of years: how long it takes to search, list, go on, rebuild and check. Medians in ms, and messages a second.
 * `bun bench/large.ts [MESSAGES] [--json]`; 200,000 when absent, and 1,000,000 is what the limits speak of.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSearch } from '../src/memory/conversations/search-turns.ts'
import { openMemory } from '../src/memory/memory.ts'
import { makeLargeHome } from './large-home.ts'

const words = ['aardvark', 'midterm', 'the', 'zebra', 'ardvar', '東京'] as const

async function main(args: readonly string[]): Promise<void> {
  const messages = Number(args.find((word) => /^\d+$/.test(word)) ?? 200_000)
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
  try {
    const path = join(folder, 'memory.sqlite')
    const made = timed(() => makeLargeHome(path, messages))
    const figures = { messages, made_ms: made, ...(await measure(path, messages)) }
    if (args.includes('--json')) console.log(JSON.stringify(figures))
    else for (const [name, value] of Object.entries(figures)) console.log(`${name.padEnd(24)} ${value}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(path: string, messages: number) {
  const opened = openMemory({ path, log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { memory } = opened
  const searches = words.map((query) => [`search_${query}_ms`, median(() => createSearch(memory.store, Date.now)({ query }))] as const)
  const projections = await memory.projections()
  const figures = {
    ...Object.fromEntries(searches),
    list_ms: median(() => memory.conversations.list({ limit: 20 })),
    latest_in_folder_ms: median(() => memory.conversations.latestIn('/elsewhere')),
    runs_ms: median(() => memory.journal.runs({ limit: 20 })),
    context_ms: median(() => memory.context('conversation_00000000000000000009', 16_000)),
    check_ms: timed(() => projections.check()),
    rebuild_per_s: Math.round((messages / timed(() => projections.rebuild())) * 1000),
  }
  memory.close()
  return figures
}

function median(body: () => unknown): number {
  const times = Array.from({ length: 15 }, () => timed(body))
  return times.toSorted((a, b) => a - b)[7] ?? Number.NaN
}

function timed(body: () => unknown): number {
  const begin = performance.now()
  body()
  return Math.round((performance.now() - begin) * 100) / 100
}

if (import.meta.main) await main(process.argv.slice(2))
