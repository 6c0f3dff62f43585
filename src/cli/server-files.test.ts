import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../host/api.ts'
import { createContext } from './context.ts'
import { CliExit } from './exit.ts'
import { withEnvFile } from './server-files.ts'

function stage(given: Environment = {}) {
  const home = mkdtempSync(join(tmpdir(), 'braidclaw-env-'))
  mkdirSync(join(home, '.braidclaw'))
  const context = createContext({ HOME: home, ...given })
  const file = (text: string, name = '.braidclaw/config.env') => writeFileSync(join(home, name), text)
  return { context: { ...context, cwd: home }, file, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

test('a file that is named and not there, or is no list of assignments, is refused without showing what stands in it', () => {
  using at = stage()
  expect(() => withEnvFile(at.context, 'none.env')).toThrow(
    expect.objectContaining({ code: 1, message: expect.stringContaining('the file does not exist') }),
  )
  at.file('A=1\nSECRET value\nB=$(rm -rf /) x\n')
  const refusal = catching(() => withEnvFile(at.context))
  expect(refusal.message.split('\n')).toEqual([expect.stringContaining('config.env:2: '), expect.stringContaining('config.env:3: ')])
  expect(refusal.message).not.toContain('SECRET value')
})

test('it is read and never run, and what is set already stays', () => {
  using at = stage({ KEEP: 'ours' })
  at.file('export KEEP=theirs\nexport NEW="$(touch /tmp/never) `id`"\nexport BRAIDCLAW_LOG=debug\n')
  const { env } = withEnvFile(at.context)
  expect([env.KEEP, env.NEW, env.BRAIDCLAW_LOG]).toEqual(['ours', '$(touch /tmp/never) `id`', 'debug'])
})

test('a key in the file is known to what redacts, and a home in the file moves the home', () => {
  using at = stage()
  at.file('MY_API_KEY=sk-0123456789abcdef\nBRAIDCLAW_HOME=~/other\n', 'my.env')
  const { redactor, home, cwd } = withEnvFile(at.context, 'my.env')
  expect(redactor.text('it is sk-0123456789abcdef')).not.toContain('sk-0123456789abcdef')
  expect([home, cwd]).toEqual([join(at.context.cwd, 'other'), at.context.cwd])
})

test('without a file nothing changes', () => {
  using at = stage()
  expect(withEnvFile(at.context)).toBe(at.context)
})

function catching(act: () => unknown): CliExit {
  try {
    act()
  } catch (error) {
    if (error instanceof CliExit) return error
  }
  throw new Error('it was not refused')
}
