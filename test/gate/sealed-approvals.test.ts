/** A yes counts only as BraidClaw wrote it: rows that somebody edits, inserts, copies or puts back are refused and named. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, asksFirst, call, home, turn } from '../support/turns.ts'

const write = call('file_write', { path: 'a.txt', content: 'one' })
const answers = [write, { text: 'over' }]
const isWritten = (at: Nest) => existsSync(join(at.workspace, 'a.txt'))
const goOn = (at: Nest) => turn(at, answers, ['-c'], { through: alone })

function sql(at: Nest, ...texts: readonly string[]): void {
  using db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
  for (const text of texts) db.run(text)
}

/** @returns the id of a question that nobody could answer */
async function asked(at: Nest): Promise<string> {
  const { stderr } = await turn(at, answers, [], { through: alone })
  return /approvals allow (\S+),/.exec(stderr)?.[1] ?? ''
}

describe('refused and named', () => {
  const allowed = `UPDATE approvals SET state = 'allowed', decided_by = 'operator', decided_at = created`
  test.each([
    ['a yes written into the row', allowed],
    ['another person', `UPDATE approvals SET decided_by = 'ann'`],
    ['another summary', `UPDATE approvals SET summary = 'file_write harmless.txt'`],
    ['another risk', `UPDATE approvals SET risk = 'low'`],
    ['a longer life', 'UPDATE approvals SET expires = expires + 1000'],
    ['another tool', `UPDATE approvals SET tool = 'file_read'`],
    ['a seal that was taken away', 'UPDATE approvals SET seal = NULL'],
    ['another number of changes', 'UPDATE approvals SET revision = revision + 1'],
  ])('%s', async (_, edit) => {
    using at = home()
    const id = await asked(at)
    sql(at, edit)
    const { code, stdout, stderr } = await at.run(['approvals', 'allow', id])
    expect([code, stdout]).toEqual([9, ''])
    expect(stderr).toContain(`approval "${id}" is not as BraidClaw wrote it: somebody edited its row`)
    if (edit !== allowed) return
    expect([(await goOn(at)).code, isWritten(at)]).toEqual([4, false])
    expect((await at.run(['approvals', 'list', '--all'])).stdout).toContain(`${id}  altered`)
    expect(JSON.parse((await at.run(['approvals', 'show', id, '--json'])).stdout)).toMatchObject({ id, state: 'altered' })
  })

  test('a row of another home, and one that somebody made up', async () => {
    using at = home()
    using other = home()
    const id = await asked(at)
    const foreign = await asked(other)
    await other.run(['approvals', 'allow', foreign])
    const columns = `run_id, conversation_id, call_id, tool, risk, reason, summary, plan, created, expires, state, decided_by, decided_at, note`
    sql(
      at,
      `ATTACH '${join(other.home, '.braidclaw/memory.sqlite')}' AS other`,
      'INSERT INTO approvals SELECT * FROM other.approvals',
      `INSERT INTO approvals(id, ${columns}) SELECT id || 'b', ${columns.replace(' state,', ` 'allowed',`)} FROM approvals WHERE id = '${id}'`,
    )
    const listed = JSON.parse((await at.run(['approvals', 'list', '--all', '--json'])).stdout)
    expect(listed.map((each: { id: string; state: string }) => [each.id, each.state]).sort()).toEqual(
      [
        [id, 'open'],
        [`${id}b`, 'altered'],
        [foreign, 'altered'],
      ].sort(),
    )
    expect([(await goOn(at)).code, isWritten(at)]).toEqual([4, false])
  })

  test.each(['deny', 'allow'])('an older version of the row, put back after "%s"', async (answer) => {
    using at = home()
    const id = await asked(at)
    sql(at, 'CREATE TABLE older AS SELECT * FROM approvals')
    if (answer === 'allow') {
      await at.run(['approvals', 'allow', id])
      sql(at, 'DROP TABLE older; CREATE TABLE older AS SELECT * FROM approvals')
      expect((await goOn(at)).code).toBe(0)
      await Bun.file(join(at.workspace, 'a.txt')).delete()
    } else await at.run(['approvals', 'deny', id])
    sql(at, `DELETE FROM approvals WHERE id = '${id}'`, 'INSERT INTO approvals SELECT * FROM older')
    const { code, stderr } = await at.run(['approvals', 'allow', id])
    expect([code, stderr]).toEqual([9, expect.stringContaining('put an older one in its place')])
    expect([(await goOn(at)).code, isWritten(at)]).toEqual([4, false])
  })
})

describe('a standing approval', () => {
  const make = [call('shell', { command: 'mkdir made' }), { text: 'over' }]
  const rule = (scope: string) => `INSERT INTO always_rules(tool, scope, added_by, added_at) VALUES ('shell', '${scope}', 'terminal', 1)`

  test.if(needs('bwrap'))('that somebody inserted allows nothing, is named, and can be revoked', async () => {
    using at = home('', asksFirst)
    await turn(at, [{ text: 'hi' }])
    const path = Bun.which('mkdir', { PATH: '/usr/bin:/bin' })
    sql(at, rule(JSON.stringify([path])))
    expect((await turn(at, make, [], { through: alone })).code).toBe(4)
    expect(existsSync(join(at.workspace, 'made'))).toBe(false)
    expect((await at.run(['approvals', 'rules', 'list'])).stdout).toContain('altered: it allows nothing; revoke it')
    expect(JSON.parse((await at.run(['approvals', 'rules', 'list', '--json'])).stdout)).toMatchObject([{ id: 1, altered: true }])
    expect(JSON.parse((await at.run(['security', 'show', '--json'])).stdout)).toMatchObject({ standingRules: 0 })
    expect((await at.run(['approvals', 'rules', 'revoke', '1'])).code).toBe(0)
    expect((await at.run(['approvals', 'rules', 'list'])).stdout).toBe('')
  })
})
