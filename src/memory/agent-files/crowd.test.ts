import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type AgentFolderFixture, createAgentFolderFixture } from './fixture.ts'
import { lastRecord } from './replace-files.ts'

let den: AgentFolderFixture
beforeEach(() => {
  den = createAgentFolderFixture()
})
afterEach(() => den.remove())

/** Remembers `qNAME-1 aNAME-1`, … and compacts after each; prints each number once it is stored. */
const talker = `
  import { openRecall } from ${JSON.stringify(join(import.meta.dir, 'agent-memory.ts'))}
  const [folder, name, turns] = process.argv.slice(-3)
  const { recall } = openRecall({ folder, now: Date.now, log: () => {}, max: 6, keep: 2 })
  const summarise = async ({ text }) => ({ ok: true, model: 'm', text: text.match(/EXISTING SUMMARY:\\n(\\d*)/)[1].length === 0 ? '1' : String(Number(text.match(/EXISTING SUMMARY:\\n(\\d*)/)[1]) + 1) })
  for (let turn = 1; turn <= Number(turns); turn += 1) {
    const kept = recall.remember('q' + name + '-' + turn, 'a' + name + '-' + turn)
    if (!kept.ok) throw new Error(kept.message)
    console.log(turn)
    await recall.compact(summarise, new AbortController().signal)
  }`

const start = (name: string, turns: number) =>
  Bun.spawn([process.execPath, '-e', talker, den.folder, name, String(turns)], { stdout: 'pipe', stderr: 'pipe' })

/** Returns every stored message: those in the archive, then those in the history. */
function everything(): string[] {
  const lines = `${den.read('history.archive.jsonl')}${den.read('history.jsonl')}`.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line).content)
}

function pairsOf(name: string, contents: readonly string[]): string[] {
  return contents.flatMap((content, at) => {
    if (!content.startsWith(`q${name}-`)) return []
    expect(contents[at + 1]).toBe(content.replace('q', 'a'))
    return [content.replace(`q${name}-`, '')]
  })
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => String(at + 1))

test('processes that talk and compact at the same time lose nothing, keep pairs together, and count every compaction once', async () => {
  const names = ['x', 'y', 'z']
  const talkers = names.map((name) => start(name, 20))
  for (const each of talkers) expect([await each.exited, await each.stderr.text()]).toEqual([0, ''])
  den.open()
  const kept = everything()
  expect(kept).toHaveLength(120)
  for (const name of names) expect(pairsOf(name, kept)).toEqual(numbers(20))
  const records = den.read('compactions.jsonl').trim().split('\n')
  expect(den.read('summary.md')).toBe(`${records.length}\n`)
  expect(lastRecord(join(den.folder, 'compactions.jsonl'))?.to_line).toBe(den.read('history.archive.jsonl').split('\n').length - 1)
}, 120_000)

test('processes that open a new folder at the same time lose no first pair', async () => {
  const names = Array.from({ length: 6 }, (_, at) => `p${at}`)
  for (let round = 0; round < 4; round += 1) {
    den.remove()
    den = createAgentFolderFixture()
    for (const each of names.map((name) => start(name, 1))) expect([await each.exited, await each.stderr.text()]).toEqual([0, ''])
    expect(everything()).toHaveLength(2 * names.length)
  }
}, 120_000)

test('kill -9 at any moment loses nothing that was acknowledged, and the summary is that of the archive', async () => {
  let told = 0
  for (let round = 0; round < 8; round += 1) {
    const child = start(`r${round}`, 10_000)
    const reader = child.stdout.getReader()
    const heard: string[] = []
    for (let chunks = 0; chunks <= round; chunks += 1) heard.push(new TextDecoder().decode((await reader.read()).value))
    // In the middle of a turn.
    await Bun.sleep(round / 2)
    child.kill('SIGKILL')
    await child.exited
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      heard.push(new TextDecoder().decode(value))
    }
    const acknowledged = heard.join('').split('\n').filter(Boolean).length
    den.open()
    const kept = pairsOf(`r${round}`, everything())
    expect(kept).toEqual(numbers(kept.length))
    expect([acknowledged, acknowledged + 1]).toContain(kept.length)
    told += kept.length
    const records = den
      .read('compactions.jsonl')
      .split('\n')
      .filter((line) => line.endsWith('}'))
    expect(den.read('summary.md').trim()).toBe(records.length === 0 ? '' : String(records.length))
  }
  expect(everything()).toHaveLength(2 * told)
}, 120_000)
