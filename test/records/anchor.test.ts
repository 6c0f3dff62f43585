/** Anchors kept where the owner of the log cannot reach: appended to a file, noted in git, handed to a command. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { call, home, refused, turn } from '../support/turns.ts'

const log = (at: Nest) => join(at.home, '.braidclaw/tool_receipts.log')

async function kept(at: Nest): Promise<void> {
  expect((await turn(at, [call('time', {}), { text: 'over' }])).code).toBe(0)
}

describe('an anchor is not kept', () => {
  test('when the chain is broken, anywhere', async () => {
    using at = home()
    await kept(at)
    writeFileSync(log(at), readFileSync(log(at), 'utf8').replace('"time"', '"tame"'))
    const file = join(at.dir, 'anchors')
    refused(await at.run(['receipt', 'anchor', '--to', file]), 9, 'not anchored')
    expect(await Bun.file(file).exists()).toBe(false)
  })

  test.each<[string, (at: Nest) => string[], number, string]>([
    ['where a folder stands', (at) => ['--to', at.dir], 1, 'not anchored'],
    ['in a folder that is not there', (at) => ['--to', join(at.dir, 'no/where')], 1, 'not anchored'],
    ['without a repository', () => ['--git-note'], 1, 'not anchored: git ended with'],
    ['by a command that fails', () => ['--command', '--', 'false'], 1, 'not anchored: false ended with 1'],
    ['by a command that is not there', () => ['--command', '--', 'no-such-program'], 1, 'cannot be started'],
    ['by no command', () => ['--command'], 2, '--command'],
    ['by words that no flag asked for', () => ['--', 'true'], 2, '--command'],
  ])('%s', async (_, args, code, says) => {
    using at = home()
    await kept(at)
    refused(await at.run(['receipt', 'anchor', ...args(at)]), code, says)
  })
})

test('in a file each line is added to those before, and later proves that nothing was cut', async () => {
  using at = home()
  const file = join(at.dir, 'anchors')
  const lines: string[] = []
  for (let round = 0; round < 2; round++) {
    await kept(at)
    lines.push((await at.run(['receipt', 'anchor', '--to', file])).stdout)
  }
  expect(readFileSync(file, 'utf8')).toBe(lines.join(''))
  for (const line of lines) expect((await at.run(['receipt', 'verify', '--against', line.trim()])).code).toBe(0)
})

test('in git it is a note on HEAD, beside those that were there, and no hook of the repository is run', async () => {
  using at = home()
  await kept(at)
  const git = (...args: string[]) =>
    Bun.spawnSync(['git', '-C', at.workspace, '-c', 'user.name=x', '-c', 'user.email=x@y', ...args], { env: at.env })
  git('init', '-q')
  git('commit', '-q', '--allow-empty', '-m', 'first')
  mkdirSync(join(at.workspace, '.git/hooks'), { recursive: true })
  for (const hook of ['reference-transaction', 'post-rewrite'])
    writeFileSync(join(at.workspace, '.git/hooks', hook), `#!/bin/sh\ntouch ${at.dir}/fired\n`, { mode: 0o755 })
  const first = (await at.run(['receipt', 'anchor', '--git-note'])).stdout.trim()
  await kept(at)
  const second = (await at.run(['receipt', 'anchor', '--git-note'])).stdout.trim()
  const notes = git('notes', '--ref=refs/notes/braidclaw', 'show', 'HEAD').stdout.toString()
  expect(notes.split('\n').filter(Boolean)).toEqual([first, second])
  expect(await Bun.file(join(at.dir, 'fired')).exists()).toBe(false)
})

test('a command gets the line on stdin, and its words as they are: no shell reads them', async () => {
  using at = home()
  await kept(at)
  const file = join(at.dir, 'a $(touch fired) b')
  const { code, stdout } = await at.run(['receipt', 'anchor', '--command', '--', 'tee', '-a', file])
  expect([code, readFileSync(file, 'utf8')]).toEqual([0, stdout])
})

test('receipts go on over a rotation: listed, verified and appended to as one chain', async () => {
  using at = home()
  refused(await at.run(['receipt', 'rotate']), 1, 'no receipts')
  await kept(at)
  const anchor = (await at.run(['receipt', 'anchor'])).stdout.trim()
  expect((await at.run(['receipt', 'rotate'])).stdout).toMatch(/^closed: \S+tool_receipts\.1\.log; receipt-\w+-2 begins the next\n$/)
  await kept(at)
  const receipts: { seq: number; tool: string }[] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
  expect(receipts.map(({ seq, tool }) => [seq, tool])).toEqual([
    [1, 'time'],
    [2, 'receipts.rotate'],
    [3, 'time'],
  ])
  expect((await at.run(['receipt', 'verify', '--deep', '--against', anchor])).stdout).toContain('valid: 3 receipts')
  expect((await turn(at, [{ text: 'on' }], ['-c'])).code).toBe(0)
  writeFileSync(log(at).replace('.log', '.1.log'), '')
  expect(await at.run(['receipt', 'verify'])).toMatchObject({ code: 9, stdout: expect.stringContaining('invalid chain at receipt 1') })
})
