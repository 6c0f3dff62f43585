/** Keys that nobody registered, recognised by their format: they are shown and stored nowhere, and change no action. */

import { expect, test } from 'bun:test'
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, home, turn } from '../support/turns.ts'

/** Put together here, so that this file holds no key. */
const github = ['ghp', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'].join('_')
const aws = ['AKIA', '7QK2ZX9MVB4LTW6Y'].join('')
const database = `postgres://app:${['correct', 'horse'].join('-')}@db.example.com/main`

test('what a tool read is redacted for the model, on the screen and in every file of the home, and the run replays', async () => {
  using at = home()
  writeFileSync(join(at.workspace, 'deploy.txt'), `token: ${github}\nkey: ${aws}\nurl: ${database}\n`)
  const { stdout, stderr, code } = await turn(at, [call('file_read', { path: 'deploy.txt' }), { text: 'It says: {{last_tool_result}}' }])
  expect([code, stderr.includes(github)]).toEqual([0, false])
  expect(stdout).toContain('token: [redacted:GitHub token]')
  expect(stdout).toContain('key: [redacted:AWS key]')
  expect(stdout).toContain('url: postgres://app:[redacted:password]@db.example.com/main')
  const files = readdirSync(join(at.home, '.braidclaw'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join(at.home, '.braidclaw', name),
  )
  const bytes = files.filter((file) => lstatSync(file).isFile()).map((file) => readFileSync(file, 'latin1'))
  expect(bytes.join('')).toContain('[redacted:GitHub token]')
  for (const key of [github, aws, 'correct-horse']) expect(bytes.join('').includes(key)).toBe(false)
  expect((await at.run(['replay', '--all'])).code).toBe(0)
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

test('a call that holds a key is refused by its kind, and one with the label would destroy the value', async () => {
  using at = home()
  const args = ['--autonomy', 'full']
  const denied = await turn(at, [call('file_write', { path: 'a.txt', content: `x=${github}` }), { text: '{{last_tool_result}}' }], args)
  expect([denied.code, existsSync(join(at.workspace, 'a.txt'))]).toEqual([3, false])
  expect(denied.stdout).toContain('the arguments hold a GitHub token')
  expect(denied.stdout + denied.stderr).not.toContain(github)
  const label = await turn(
    at,
    [call('file_write', { path: 'a.txt', content: 'x=[redacted:AWS key]' }), { text: '{{last_tool_result}}' }],
    args,
  )
  expect([label.code, existsSync(join(at.workspace, 'a.txt'))]).toEqual([3, false])
  expect(label.stdout).toContain('[redacted:AWS key] stands for a value that is hidden from you')
})

test('a key that the model writes in pieces never reaches the screen', async () => {
  using at = home()
  const { stdout } = await turn(at, [{ text: `The token is ${github}, keep it.`, chunks: 40 }])
  expect(stdout).toBe('The token is [redacted:GitHub token], keep it.\n')
})
