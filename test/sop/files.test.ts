/** The files of procedures through the real executable: where they are found, and what is said about a wrong one. */

import { expect, test } from 'bun:test'
import { home } from '../support/turns.ts'
import { dailyCheck, writeSop } from './daily-check.ts'

test('the example of the seed is listed, valid and shown, in each of the three folders', async () => {
  for (const folder of ['sops', 'workspace/sops', undefined]) {
    using at = home()
    if (folder === undefined) at.file('sops/daily-check/SOP.toml', dailyCheck)
    else writeSop(at, 'daily-check', dailyCheck, folder)
    const listed = await at.run(['sop', 'list', '--json'])
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { name: 'daily-check', description: 'Run a daily workspace check', steps: 4, problems: 0 },
    ])
    const valid = await at.run(['sop', 'validate'])
    expect([valid.code, valid.stderr, valid.stdout.includes('SOP.toml is valid: 4 steps')]).toEqual([0, '', true])
    const shown = await at.run(['sop', 'show', 'daily-check'])
    expect(shown.stdout).toEndWith(`SOP.toml\n${dailyCheck}`)
  }
})

test('every error of a file is reported at once with line, column and what to do, and the exit code is 1', async () => {
  using at = home()
  const path = writeSop(
    at,
    'daily-check',
    dailyCheck.replace('"file_list"', '"file_lst"').replace('id = "approval"', 'id = "list"\ncolour = 1'),
  )
  const { code, stdout, stderr } = await at.run(['sop', 'validate', 'daily-check'])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr.split('\n').filter(Boolean)).toEqual([
    `error: ${path}:7:1: steps.0.tool: "file_lst" is not a tool; did you mean "file_list"?`,
    `error: ${path}:16:1: steps.2.id: "list" is the id of an earlier step too; choose another`,
    `error: ${path}:17:1: steps.2.colour: is not a field of this table`,
    '3 problems found',
  ])
})

test('an unknown name is answered with the nearest one, and an empty home with what to write', async () => {
  using at = home()
  expect((await at.run(['sop'])).stderr).toContain('no procedures yet; write ')
  writeSop(at, 'daily-check', dailyCheck)
  const { code, stderr } = await at.run(['sop', 'show', 'daily-chek'])
  expect([code, stderr]).toEqual([2, 'error: no procedure "daily-chek"; did you mean "daily-check"?\n'])
})

test('verify proves the example of the seed, and names a bypass with the shortest run to it', async () => {
  using at = home()
  writeSop(at, 'daily-check', dailyCheck)
  const good = await at.run(['sop', 'verify', 'daily-check'])
  expect([good.code, good.stdout]).toEqual([0, expect.stringMatching(/^daily-check: every rule holds \(\d+ states explored\)\n$/)])
  writeSop(at, 'daily-check', dailyCheck.replace('kind = "approval"', 'kind = "approval"\non_failure = "continue"'))
  const { code, stderr } = await at.run(['sop', 'verify', 'daily-check'])
  expect([code, stderr.split('\n')[1]]).toEqual([
    1,
    '  list begins → list done → summarize begins → summarize done → approval begins → approval failed → write begins → write done',
  ])
})
