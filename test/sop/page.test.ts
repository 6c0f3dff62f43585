/** The page docs/sop.md does what it says: its file is the example of the seed, and its commands run in their order. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { alone, home, scripted } from '../support/turns.ts'
import { dailyCheck, writeSop } from './daily-check.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/sop.md'), 'utf8')
const blocks = (language: string) => [...page.matchAll(new RegExp(`\`\`\`${language}\\n([^\`]*)\`\`\``, 'g'))].map(([, text = '']) => text)

test('it begins by itself', async () => {
  const [, file = ''] = blocks('toml')
  const [, , lines = ''] = blocks('sh')
  using at = home()
  writeSop(at, 'release-notes', file)
  const env = scripted(at, [{ text: 'Better dates.' }]).env
  const seen: string[] = []
  for (const line of lines.trim().split('\n')) {
    const { code, stdout } = await at.run(line.split(' ').slice(1), { env, through: alone })
    expect([line, code]).toEqual([line, 0])
    seen.push(stdout)
  }
  expect(seen[0]).toContain('cron 0 9 * * mon, Europe/Berlin')
  expect(seen[1]).toContain('[triggers: enabled]')
  expect(seen[3]).toContain('notes:\nBetter dates.\n')
})

test.if(needs('bwrap', 'setsid'))('a daily check', async () => {
  const [file = ''] = blocks('toml')
  expect(file).toBe(`# ~/.braidclaw/sops/daily-check/SOP.toml\n${dailyCheck}`)
  const [before = '', after = ''] = blocks('sh')
  const [said = ''] = blocks('text')
  using at = home()
  at.file('a.txt', 'hello')
  writeSop(at, 'daily-check', file)
  const env = scripted(at, [{ text: 'One file.' }]).env
  const run = async (line: string) => {
    const words = line.replace('RUN/', `${JSON.parse((await at.run(['sop', 'status', '--json'])).stdout)[0]?.id}/`).split(' ')
    return at.run(words.slice(1), { env, through: alone })
  }
  const codes: (number | null)[] = []
  for (const line of before.trim().split('\n')) {
    const { code, stderr } = await run(line)
    codes.push(code)
    if (line.endsWith('run daily-check')) for (const each of said.trim().split('\n')) expect(stderr).toContain(`${each}\n`)
  }
  for (const line of after.trim().split('\n')) codes.push((await run(line)).code)
  // The procedure waits once.
  expect(codes).toEqual([0, 0, 0, 4, 0, 0, 0, 0])
  expect(readFileSync(join(at.workspace, 'daily-check.txt'), 'utf8')).toBe('One file.')
  const doctor = await at.run(['doctor', '--json'])
  expect(JSON.parse(doctor.stdout)).toContainEqual({
    what: 'procedures',
    state: 'ok',
    says: '1 procedure, 0 with errors; 0 runs not ended',
    remedy: [],
  })
})
