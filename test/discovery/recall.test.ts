/**
 * What discovery finds without a model. MetaTool (https://github.com/HowieHwong/MetaTool): 199 tools, 1,990 requests for one and 497 for two of
 * them. Skills: the front matter of 66 public ones. The index was tuned on the even lines; the odd ones are reported.
 */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSkillDiscovery, createToolDiscovery } from '../../src/library/discovery.ts'
import { isDeep } from '../support/tier.ts'

const fixtures = join(import.meta.dir, '../fixtures/discovery')
const rows = <Row>(name: string): Row[] =>
  readFileSync(join(fixtures, name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

type Request = { readonly query: string; readonly gold: readonly string[] }
type SkillRow = {
  readonly folder: string
  readonly head: string
  readonly name: string | null
  readonly description: string | null
  readonly yamlError: string | null
}

/** The odd lines; in the quick tier every fifth of them. */
const held = <Row>(all: readonly Row[]) => all.filter((_, at) => at % 2 === 1 && (isDeep || at % 10 === 1))
const percent = (shares: readonly number[]) => (100 * shares.reduce((sum, share) => sum + share, 0)) / shares.length

async function recall(requests: readonly Request[]): Promise<number> {
  const discovery = await createToolDiscovery()
  const tools = rows<{ name: string; description: string }>('metatool-tools.jsonl')
  await discovery.indexBatch(tools.map((tool) => ({ ...tool, source: 'local', schema: { ...tool, parameters: { type: 'object' } } })))
  const shares: number[] = []
  for (const { query, gold } of requests) {
    const found = (await discovery.search(query, { limit: 5 })).map(({ tool }) => tool.name)
    shares.push(gold.filter((name) => found.includes(name)).length / gold.length)
  }
  return percent(shares)
}

test('of the tools for a request, 72 in a hundred are among the first five', async () => {
  const single = await recall(held(rows<Request>('metatool-single.jsonl')))
  console.log(`recall@5, one tool: ${single.toFixed(1)} %`)
  expect(single).toBeGreaterThanOrEqual(isDeep ? 72 : 68)
}, 60_000)

test('of two tools for a request, 64 in a hundred are among the first five', async () => {
  const multi = await recall(held(rows<Request>('metatool-multi.jsonl')))
  console.log(`recall@5, two tools: ${multi.toFixed(1)} %`)
  expect(multi).toBeGreaterThanOrEqual(isDeep ? 64 : 58)
}, 60_000)

test('skills are read as published, 85 in a hundred are found, and 90 in a hundred questions about other things find nothing', async () => {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-skills-'))
  try {
    const expected = rows<SkillRow>('skills.jsonl')
    for (const { folder, head } of expected) {
      mkdirSync(join(root, folder))
      writeFileSync(join(root, folder, 'SKILL.md'), head)
    }
    const discovery = await createSkillDiscovery({ skillsRoot: root })
    const read = new Map(discovery.all().map(({ name, description }) => [name, description]))
    for (const { name, description, yamlError } of expected)
      if (yamlError === null && name !== null) expect(read.get(name)).toBe(description as string)
    // Two have no front matter; two have values with a colon that nobody quoted, and are read all the same.
    expect([expected.length, read.size, read.has('discord'), read.has('food-order')]).toEqual([68, 66, true, true])

    const queries = rows<{ query: string; gold: string }>('skill-queries.jsonl').filter((_, at) => at % 2 === 1)
    const hits: number[] = []
    for (const { query, gold } of queries) hits.push((await discovery.search(query)).some(({ skill }) => skill.name === gold) ? 1 : 0)
    const nothing: number[] = []
    for (const { query } of rows<{ query: string }>('off-topic.jsonl')) nothing.push((await discovery.search(query)).length === 0 ? 1 : 0)
    console.log(`skills, recall@5: ${percent(hits).toFixed(1)} %; nothing for other topics: ${percent(nothing).toFixed(1)} %`)
    expect(percent(hits)).toBeGreaterThanOrEqual(85)
    expect(percent(nothing)).toBeGreaterThanOrEqual(90)
  } finally {
    rmSync(root, { recursive: true })
  }
})
