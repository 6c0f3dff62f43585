/** Where the tools work when nobody said so: the folder one is in, except where that holds too much; and what stays has its own. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { daemon, person } from '../support/daemon.ts'
import { call, scripted } from '../support/turns.ts'

const writes = [call('file_write', { path: 'made.txt', content: 'x' }), { text: 'done' }]
const question = ['agent', '-m', 'What files are in this project?'] as const

function project(at: Nest, name = 'project'): string {
  const folder = join(at.dir, 'home', name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.txt`), 'x')
  return folder
}

const write = (at: Nest, cwd: string, args: readonly string[] = []) =>
  at.run(['agent', '-m', 'go', '--approve-all-medium', ...args], { cwd, ...scripted(at, writes) })

describe('the folder one is in', () => {
  test.each([['before init'], ['after init']])("the README's own question answers with its files, %s", async (when) => {
    using at = nest()
    if (when === 'after init') expect((await at.run(['init'])).code).toBe(0)
    const { code, stdout } = await at.run(question, { cwd: project(at) })
    expect([code, stdout.includes('project.txt')]).toEqual([0, true])
  })

  test('init makes ~/braidclaw-workspace, and only a workspace_dir that is named holds everywhere', async () => {
    using at = nest()
    rmSync(at.workspace, { recursive: true })
    const cwd = project(at)
    expect((await at.run(['init'], { cwd })).code).toBe(0)
    expect(existsSync(at.workspace)).toBe(true)
    expect(readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')).toContain('\n# workspace_dir = "~/braidclaw-workspace"\n')
    at.config(`workspace_dir = "${project(at, 'fixed')}"\n`)
    expect((await at.run(question, { cwd })).stdout).toContain('fixed.txt')
  })

  test('init tells the owner of an older file why the tools stay out of other folders', async () => {
    using at = nest()
    at.config('workspace_dir = "~/braidclaw-workspace"\n')
    const { code, stderr } = await at.run(['init'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('to have them work in the folder you are in, take workspace_dir out of')])
  })
})

describe('a folder that holds too much', () => {
  test.each([
    ['the home itself', (at: Nest) => at.home],
    ['the root', () => '/'],
    ['our own records', (at: Nest) => join(at.home, '.braidclaw')],
  ])('%s is left alone: ~/braidclaw-workspace is made and used instead, and that is said', async (_, folder) => {
    using at = nest()
    rmSync(at.workspace, { recursive: true })
    mkdirSync(join(at.home, '.braidclaw'))
    const { code, stderr } = await write(at, folder(at))
    expect(code).toBe(0)
    expect(stderr).toContain(
      `note: the tools work in ${at.workspace}, and not in all of ${folder(at)}; cd into a project, or name a folder with -C`,
    )
    expect([existsSync(join(at.workspace, 'made.txt')), existsSync(join(folder(at), 'made.txt'))]).toEqual([true, false])
  })

  test('who names it means it', async () => {
    using at = nest()
    const { code, stderr } = await write(at, at.home, ['-C', '.'])
    expect([code, stderr.includes('note: the tools work in'), existsSync(join(at.home, 'made.txt'))]).toEqual([0, false, true])
  })

  test('a question without tools needs no folder: nothing is made, nothing is said', async () => {
    using at = nest()
    rmSync(at.workspace, { recursive: true })
    const { code, stderr } = await at.run(['hello there'], { cwd: at.home, ...scripted(at, [{ text: 'hi' }]) })
    expect([code, stderr, existsSync(at.workspace)]).toEqual([0, '', false])
  })
})

test('a daemon works in ~/braidclaw-workspace, wherever it was started', async () => {
  using at = nest()
  rmSync(at.workspace, { recursive: true })
  const cwd = project(at)
  const running = await daemon(at, ['--approve-all-medium'], { cwd, ...scripted(at, writes) })
  await using someone = await person(running.dir)
  expect(await someone.ask('go')).toBe('done')
  expect((await running.stop()).code).toBe(0)
  expect([existsSync(join(at.workspace, 'made.txt')), existsSync(join(cwd, 'made.txt'))]).toEqual([true, false])
})
