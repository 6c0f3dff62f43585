/** Approvals across processes: asked in one, answered in another, good for one plan, once, for ten minutes. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { talk } from '../support/talk.ts'
import { alone, asksFirst, call, home, turn } from '../support/turns.ts'

const write = (content = 'one') => call('file_write', { path: 'a.txt', content })
const over = { text: 'over' }
const written = (at: Nest) => (existsSync(join(at.workspace, 'a.txt')) ? readFileSync(join(at.workspace, 'a.txt'), 'utf8') : undefined)

/** A turn that nobody could answer. @returns the id of what it asked */
async function asked(at: Nest): Promise<string> {
  const { code, stderr } = await turn(at, [write(), over], [], { through: alone })
  expect([code, written(at)]).toEqual([4, undefined])
  const [, id = ''] = /braidclaw approvals allow (\S+), then: braidclaw agent -c -m "go on"/.exec(stderr) ?? []
  expect(id).toMatch(/^run_\w+\/\S+$/)
  return id
}

const goOn = (at: Nest, content = 'one') => turn(at, [write(content), over], ['-c'], { through: alone })

/** What an intruder, or time, does to the table. */
function alter(at: Nest, sql: string): void {
  using db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
  db.run(sql)
}

describe('a question that nobody could answer', () => {
  test('is not answered by going on: the next run asks again', async () => {
    using at = home()
    await asked(at)
    expect([(await goOn(at)).code, written(at)]).toEqual([4, undefined])
  })

  test('once denied, it stays denied, and no second answer counts', async () => {
    using at = home()
    const id = await asked(at)
    expect((await at.run(['approvals', 'deny', id, '--note', 'not today'])).stdout).toContain('denied: file_write')
    const late = await at.run(['approvals', 'allow', id])
    expect([late.code, late.stdout]).toEqual([1, ''])
    expect(late.stderr).toContain(`approval "${id}" was already denied by operator`)
    expect([(await goOn(at)).code, written(at)]).toEqual([4, undefined])
  })

  test('nobody can answer one that was never asked', async () => {
    using at = home()
    await asked(at)
    const { code, stderr } = await at.run(['approvals', 'allow', 'run_forged/call_1'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('the approval "run_forged/call_1" does not exist')])
  })

  test.each([
    ['expired before the answer', 'UPDATE approvals SET created = created - 600000, expires = expires - 600000'],
    ['was given a longer life than ten minutes', 'UPDATE approvals SET expires = expires + 3600000'],
  ])('is closed when it %s', async (_, sql) => {
    using at = home()
    const id = await asked(at)
    alter(at, sql)
    expect((await at.run(['approvals', 'list'])).stdout).toBe('')
    expect(await at.run(['approvals', 'allow', id])).toMatchObject({ code: 9, stdout: '' })
    expect([(await goOn(at)).code, written(at)]).toEqual([4, undefined])
  })

  test.each([
    ['expired meanwhile', 'UPDATE approvals SET created = created - 600000, expires = expires - 600000', 'one'],
    ['was moved to another plan', `UPDATE approvals SET plan = 'f00'`, 'one'],
    ['is for another plan', '', 'two'],
    ['belongs to another conversation', `UPDATE approvals SET conversation_id = 'conversation_x'`, 'one'],
  ])('an allowed one that %s is worth nothing', async (_, sql, content) => {
    using at = home()
    const id = await asked(at)
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    if (sql) alter(at, sql)
    expect([(await goOn(at, content)).code, written(at)]).toEqual([4, undefined])
  })

  test('allowed, it lets exactly one later run go on without asking', async () => {
    using at = home()
    const id = await asked(at)
    expect(JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)).toMatchObject([{ id, tool: 'file_write', state: 'open' }])
    expect((await at.run(['approvals', 'allow', id])).stdout).toContain('allowed, once: file_write')
    const went = await goOn(at)
    expect([went.code, went.stdout, written(at)]).toEqual([0, 'over\n', 'one'])
    await Bun.write(join(at.workspace, 'a.txt'), '')
    const { stdout } = await at.run(['approvals', 'list', '--all', '--json'])
    expect(JSON.parse(stdout).map(({ state }: { state: string }) => state)).toEqual(['used', 'used'])
    expect([(await goOn(at)).code, written(at)]).toEqual([4, ''])
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    expect((await at.run(['replay', '--all'])).code).toBe(0)
  })
})

describe('a turn that waits at its question', () => {
  const waits = async (at: Nest, answers: Parameters<Nest['terminal']>[1] = []) => {
    const seen = talk(at, [write(), over], [['[y/N/a]', ''], ...answers], ['-m', 'go'])
    const listed = async () => JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout || '[]')
    const found: { id?: string } = {}
    for (let tries = 0; tries < 100 && !found.id; tries++) {
      if (existsSync(join(at.home, '.braidclaw/memory.sqlite'))) found.id = (await listed())[0]?.id
      else await Bun.sleep(20)
    }
    return { seen, id: found.id ?? '' }
  }

  test('hears a no from a second terminal', async () => {
    using at = home()
    const { seen, id } = await waits(at)
    expect((await at.run(['approvals', 'deny', id])).code).toBe(0)
    const { code, stdout } = await seen
    expect([code, written(at)]).toEqual([3, undefined])
    expect(stdout).toContain('answered elsewhere')
  })

  test('takes no yes that somebody wrote into its row: it hears a no that says so', async () => {
    using at = home()
    const { seen } = await waits(at)
    alter(at, `UPDATE approvals SET state = 'allowed', decided_by = 'operator', decided_at = created`)
    const { code, stdout } = await seen
    expect([code, written(at)]).toEqual([3, undefined])
    expect(stdout).toContain('answered elsewhere')
  })

  test('hears a yes from a second terminal, and later answers are refused by name', async () => {
    using at = home()
    const { seen, id } = await waits(at)
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    expect([(await seen).code, written(at)]).toEqual([0, 'one'])
    const late = await at.run(['approvals', 'deny', id])
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining('was already used by operator')])
  })

  test('is no longer waited for when it was stopped: then the yes comes too late', async () => {
    using at = home()
    const { seen, id } = await waits(at)
    await at.run(['estop'])
    expect((await seen).code).toBe(10)
    const { code, stderr } = await at.run(['approvals', 'allow', id])
    expect([code, stderr]).toEqual([1, expect.stringContaining('already denied by estop')])
    expect(written(at)).toBeUndefined()
  })
})

describe('an "always" rule', () => {
  test.if(needs('bwrap'))('is listed with executable and sub-command, and gone once revoked', async () => {
    using at = home('', asksFirst)
    const make = [call('shell', { command: 'mkdir made' }), over]
    await talk(at, make, [['[y/N/a]', 'a\r']], ['-m', 'go'])
    expect(existsSync(join(at.workspace, 'made'))).toBe(true)
    const rules = JSON.parse((await at.run(['approvals', 'rules', 'list', '--json'])).stdout)
    expect(rules).toMatchObject([{ tool: 'shell', allows: expect.stringMatching(/^\/\S+\/mkdir$/), addedBy: 'terminal' }])
    const again = () => turn(at, [call('shell', { command: 'mkdir again' }), over], [], { through: alone })
    expect((await at.run(['approvals', 'rules', 'revoke', '99'])).code).toBe(1)
    expect((await again()).code).toBe(0)
    expect((await at.run(['approvals', 'rules', 'revoke', String(rules[0].id)])).stdout).toContain('asked about again')
    expect((await again()).code).toBe(4)
  })
})
