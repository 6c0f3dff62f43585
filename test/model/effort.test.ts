/** How much a model reasons, through the real executable: from the settings, a flag, -o and /effort to the request, and back in a replay. */

import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { asReplayed } from '../support/replayed.ts'
import { refused } from '../support/turns.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

const completions = dialects.find(({ kind }) => kind === 'openai-compatible') ?? expect.unreachable()

/** A server that answers with "Answer N.", and refuses the level "max" in words that could be about the model. */
function server() {
  let count = 0
  const says = "model m: 'reasoning_effort' of 'max' is not supported"
  const fake = startFake(
    ({ path, text }) => {
      if (path.endsWith('/models')) return Response.json({ object: 'list', data: [{ id: 'm', object: 'model' }] })
      if (!path.endsWith('/chat/completions')) return new Response('404 page not found', { status: 404 })
      if (text.includes('"max"')) return new Response(completions.errorBody('invalid_request_error', says), { status: 400 })
      return sends(completions.events({ thinking: { text: ['Hm.'], signature: '' }, text: [`Answer ${count++}.`] }))
    },
    { questions: true },
  )
  return { ...fake, [Symbol.dispose]: fake.stop }
}

function configured(at: Nest, { url }: Pick<Fake, 'url'>, effort = ''): void {
  const provider = (name: string) =>
    `[providers.models.${name}]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${url}"\nmax_retries = 0\n${effort}`
  at.config(`default_provider = "far"\nworkspace_dir = "${at.workspace}"\n${provider('far')}${provider('other')}`)
}

const levels = ({ asked }: Pick<Fake, 'asked'>) =>
  asked.flatMap(({ path, text }) => (path.endsWith('/chat/completions') ? [JSON.parse(text).reasoning_effort] : []))

describe('refused before a model is asked, with what was meant', () => {
  test('a wrong level in the settings, of --effort and of -o', async () => {
    using fake = server()
    using at = nest()
    configured(at, fake)
    const meant = 'did you mean "medium"?'
    refused(await at.run(['agent', '-m', 'hi', '--effort', 'meduim']), 2, meant)
    refused(await at.run(['--effort', 'meduim', 'hi there']), 2, meant)
    refused(await at.run(['-o', 'effort=meduim', 'hi there']), 2, `-o effort: "meduim" is not allowed`, meant)
    refused(await at.run(['-o', 'efort=low', 'hi there']), 2, 'did you mean "effort"?')
    const backend = ['--effort', 'low', '--tools', 'default', '--tool-backend', 'bash']
    refused(await at.run([...backend, 'hi there']), 2, '--effort means nothing with the tool backend "bash"')
    configured(at, fake, 'effort = "meduim"\n')
    refused(await at.run(['hi there']), 1, 'providers.models.far.effort', meant)
    expect(levels(fake)).toEqual([])
  })

  test('a model that does not reason gets none, with one warning that says how to correct that', async () => {
    using fake = server()
    using at = nest()
    configured(at, fake, 'effort = "high"\n')
    const facts = (reasons: boolean) => writeFileSync(join(at.home, '.braidclaw/models.toml'), `[far.m]\nreasons = ${reasons}\n`)
    facts(false)
    const plain = await at.run(['hi there'])
    expect([plain.code, plain.stdout]).toEqual([0, 'Answer 0.\n'])
    expect(plain.stderr.match(/effort is not sent: m does not reason; if it does, set reasons in models\.toml/g)).toHaveLength(1)
    facts(true)
    expect((await at.run(['hi there'])).stderr).toBe('')
    expect(levels(fake)).toEqual([undefined, 'high'])
  })
})

test('the settings, --effort and -o reach the request, the stronger one counts, and without them nothing is sent', async () => {
  using fake = server()
  using at = nest()
  configured(at, fake)
  await at.run(['hi there'])
  await at.run(['agent', '-m', 'hi', '--effort', 'minimal'])
  await at.run(['-o', 'effort=low', 'hi there'])
  await at.run(['-o', 'reasoning_effort=none', '--effort', 'high', 'hi there'])
  configured(at, fake, 'effort = "medium"\n')
  await at.run(['hi there'])
  await at.run(['--effort', 'xhigh', '-m', 'other', 'hi there'])
  await at.run(['stdio', '--effort', 'low'], { stdin: '{"prompt": "hi"}\n' })
  expect(levels(fake)).toEqual([undefined, 'minimal', 'low', 'none', 'medium', 'xhigh', 'low'])
})

test('a run with an effort replays to the same events, whatever the settings are by then', async () => {
  using fake = server()
  using at = nest()
  configured(at, fake)
  const { stdout } = await at.run(['agent', '-m', 'hi', '--effort', 'high', '--output-format', 'stream-json'])
  const { runId } = JSON.parse(stdout.split('\n')[0] ?? '{}')
  for (const effort of ['', 'effort = "low"\n']) {
    configured(at, fake, effort)
    const replay = await at.run(['replay', runId])
    expect([replay.code, asReplayed(replay.stdout)]).toEqual([0, asReplayed(stdout)])
  }
  expect((await at.run(['receipt', 'verify'])).code).toBe(0)
  expect(levels(fake)).toEqual(['high'])
})

test('/effort shows, sets and takes back a level, Tab completes it, /model keeps it, and a refusal says what was sent', async () => {
  using fake = server()
  using at = nest()
  configured(at, fake, 'effort = "low"\n')
  const { code, stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', '/effort\r'],
      ['effort: low', ''],
      ['set it with /effort LEVEL: none, minimal, low, medium, high, xhigh, max, default', 'one\r'],
      ['Answer 0.', '/effort hihg\r'],
      ['no level "hihg"; did you mean "high"?', '/effort hi\t'],
      ['/effort high', '\r'],
      ['effort: high, from the next turn on', 'two\r'],
      ['Answer 1.', '/model other\r'],
      ['other/m', '/effort\r'],
      ['effort: high', 'three\r'],
      ['Answer 2.', '/effort max\r'],
      ['effort: max,', 'four\r'],
      ['effort = "max" was sent: choose another level', '/effort default\r'],
      ['effort: as configured,', 'five\r'],
      ['Answer 3.', '/exit\r'],
    ],
  )
  expect(code).toBe(0)
  expect(stdout).toContain('Answer 3.')
  expect(stdout).not.toContain('the server has')
  expect(levels(fake)).toEqual(['low', 'high', 'high', 'max', 'low'])
}, 60_000)

test('/effort says of a model that does not reason, and of one without HTTP, that they take none', async () => {
  using fake = server()
  using at = nest()
  configured(at, fake)
  writeFileSync(join(at.home, '.braidclaw/models.toml'), '[far.m]\nreasons = false\n')
  const { stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', '/effort high\r'],
      ['far/m takes no effort: it is known not to reason', '/effort default\r'],
      ['effort: as configured', '/model local\r'],
      ['local/mock', '/effort high\r'],
      ['local/mock takes no effort', '/exit\r'],
    ],
  )
  expect(stdout).toContain('takes no effort')
})
