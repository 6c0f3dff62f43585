import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configOf } from './load.fixture.ts'
import { isTooBroad, unnamedWorkspace } from './paths.ts'

let folder = ''
const at = (path: string) => join(folder, path)

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-workspace-')))
  for (const path of ['home/ann/.braidclaw/logs', 'home/ann/project', 'home/anna']) mkdirSync(at(path), { recursive: true })
  symlinkSync(at('home/ann'), at('link'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const standing = (cwd: string) => ({ cwd, home: at('home/ann/.braidclaw'), userHome: at('home/ann') })

describe('a folder that holds too much is no workspace', () => {
  test.each(['home/ann', 'home', '', 'link', 'home/ann/.braidclaw', 'home/ann/.braidclaw/logs'])('%j', (path) => {
    expect(isTooBroad(standing(at(path)))).toBe(true)
    expect(unnamedWorkspace(standing(at(path)))).toEqual({
      value: at('home/ann/braidclaw-workspace'),
      origin: { source: 'default', where: 'built in' },
    })
  })

  test('the root, also where it is the home', () => {
    expect(isTooBroad({ ...standing('/'), userHome: '/' })).toBe(true)
    expect(unnamedWorkspace({ ...standing('/'), userHome: '/' }).value).toBe('/braidclaw-workspace')
  })

  test('a home that is itself a link', () => {
    expect(isTooBroad({ ...standing(at('home/ann')), userHome: at('link') })).toBe(true)
  })
})

test.each(['home/ann/project', 'home/anna', 'home/ann/braidclaw-workspace'])('%j is the workspace of whoever is there', (path) => {
  expect(isTooBroad(standing(at(path)))).toBe(false)
  expect(unnamedWorkspace(standing(at(path))).value).toBe(at(path))
})

test('what stays in the background has one of its own, wherever it was started', () => {
  expect(unnamedWorkspace({ ...standing(at('home/ann/project')), stays: true }).value).toBe(at('home/ann/braidclaw-workspace'))
})

test('a folder that was named is the workspace, whatever it holds', () => {
  const named = { user: 'workspace_dir = "~"', home: at('home/ann/.braidclaw'), env: { HOME: at('home/ann') } }
  expect(configOf({ ...named, cwd: at('home/anna') }).workspaceDir).toBe(at('home/ann'))
  expect(configOf({ ...named, user: '', flags: { workspace: '.' }, cwd: at('home/ann') }).workspaceDir).toBe(at('home/ann'))
})
