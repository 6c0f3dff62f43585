/** `braidclaw update` and `braidclaw uninstall`: what they say, and that a purge removes the home of nobody else, and never while it is used. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { alone, home, refused, turn } from '../support/turns.ts'

const ours = (at: Nest) => join(at.home, '.braidclaw')
const purge = (at: Nest, ...more: string[]) => at.run(['uninstall', '--purge', ...more], { through: alone })

test('update names a command and changes nothing', async () => {
  using at = nest()
  const { code, stdout, stderr } = await at.run(['update'])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^braidclaw \d+\.\d+\.\d+: \/.*\nto update it: .+\n$/)
  expect(existsSync(ours(at))).toBe(false)
})

test('uninstall lists what there is, and removes nothing', async () => {
  using at = home()
  await turn(at, [{ text: 'Hello.' }])
  const before = readdirSync(ours(at)).sort()
  const { code, stdout } = await at.run(['uninstall'])
  expect(code).toBe(0)
  expect(stdout).toStartWith(`home: ${ours(at)}\n${before.map((name) => `  ${name}\n`).join('')}program: `)
  expect(stdout).toEndWith('to remove the home too: braidclaw uninstall --purge\n')
  expect(stdout).not.toContain('not yet: ')
  expect(readdirSync(ours(at)).sort()).toEqual(before)
})

test('a purge without an answer or --yes removes nothing', async () => {
  using at = home()
  await turn(at, [{ text: 'Hello.' }])
  const { code, stderr } = await purge(at)
  expect([code, stderr]).toEqual([4, expect.stringContaining('nothing was removed; --yes removes it without asking')])
  expect(existsSync(join(ours(at), 'memory.sqlite'))).toBe(true)
})

test('a purge removes the home, and nothing that its links lead to', async () => {
  using at = home()
  await turn(at, [{ text: 'Hello.' }])
  const kept = at.file('kept.txt', 'kept')
  symlinkSync(at.workspace, join(ours(at), 'link'))
  const { code, stdout } = await purge(at, '--yes')
  expect([code, stdout]).toEqual([0, expect.stringContaining(`removed ${ours(at)}; now remove the program: `)])
  expect([existsSync(ours(at)), existsSync(kept)]).toEqual([false, true])
  expect((await purge(at, '--yes')).stdout).toContain('there is none')
})

test('a home that is a link is removed with its folder', async () => {
  using at = home()
  renameSync(ours(at), join(at.dir, 'elsewhere'))
  symlinkSync(join(at.dir, 'elsewhere'), ours(at))
  expect((await purge(at, '--yes')).code).toBe(0)
  expect([existsSync(ours(at)), existsSync(join(at.dir, 'elsewhere'))]).toEqual([false, false])
})

test('a person at the terminal is asked', async () => {
  using at = home()
  const answered = (type: string) => at.terminal(['uninstall', '--purge'], [['for good? [y/N] ', type]])
  expect((await answered('n\n')).code).toBe(4)
  expect(existsSync(ours(at))).toBe(true)
  expect((await answered('y\n')).code).toBe(0)
  expect(existsSync(ours(at))).toBe(false)
})

test('it refuses while a daemon uses the home', async () => {
  using at = home()
  const daemon = at.start(['daemon', '--fifo-dir', join(at.dir, 'fifos')])
  await daemon.says('ready:')
  refused(await purge(at, '--yes').then((ended) => ({ ...ended, stdout: '' })), 1, `process ${daemon.pid}`, 'uses the home; end it first')
  expect(existsSync(join(ours(at), 'config.toml'))).toBe(true)
  process.kill(daemon.pid, 'SIGTERM')
  await daemon.result
  expect((await purge(at, '--yes')).code).toBe(0)
}, 60_000)

test('it refuses while a service is installed', async () => {
  using at = home()
  await at.run(['service', 'install', '--manager', 'background'])
  const { code, stderr } = await purge(at, '--yes')
  expect([code, stderr]).toEqual([1, expect.stringContaining('first: braidclaw service uninstall --manager background')])
  expect((await at.run(['update'])).stdout).toContain('then: braidclaw service restart\n')
  await at.run(['service', 'uninstall', '--manager', 'background'])
  expect((await purge(at, '--yes')).code).toBe(0)
}, 60_000)

test.each([
  ['the home folder of the user', '.', 'does not look like a home of ours alone'],
  ["somebody's folder", 'project', 'does not look like a home of ours alone'],
])('it refuses %s', async (_, folder, why) => {
  using at = nest()
  mkdirSync(join(at.home, 'project'))
  writeFileSync(join(at.home, 'project/mine.txt'), '')
  const env = { BRAIDCLAW_HOME: join(at.home, folder) }
  const { code, stderr } = await at.run(['uninstall', '--purge', '--yes'], { env })
  expect([code, stderr]).toEqual([1, expect.stringContaining(why)])
  expect(existsSync(join(at.home, 'project/mine.txt'))).toBe(true)
})
