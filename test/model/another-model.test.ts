/** Through the real executable: a conversation goes on with another model of the same vendor, which refuses the signatures of the first. */

import { expect, test } from 'bun:test'
import { nest } from '../support/cli.ts'
import { dialects, type Speech } from '../support/dialects.ts'
import { type Asked, type Fake, sends, startFake } from '../support/vendor-fake.ts'

const of = (kind: string) => {
  const found = dialects.find((dialect) => dialect.kind === kind)
  if (found === undefined) throw new Error(`no dialect ${kind}`)
  return found
}

const words = (n: number): Speech => ({ thinking: { text: [`thought ${n}`], signature: `c2lnbmF0dXJl${n}` }, text: [`Answer ${n}.`] })

/** As the vendor: it knows the signatures that a model of its own made, and refuses each other one and text of white space. */
function vendor(): Fake {
  const signed = new Map<string, string>()
  return startFake(({ text }, n) => {
    const body = JSON.parse(text)
    const blocks = body.messages.flatMap(({ content }: { content: unknown }) => (Array.isArray(content) ? content : []))
    for (const block of blocks) {
      const bad = block.type === 'thinking' && signed.get(block.signature) !== body.model
      const blank = block.type === 'text' && block.text.trim() === ''
      const why = bad
        ? 'Invalid `signature` in `thinking` block'
        : blank
          ? 'text content blocks must contain non-whitespace text'
          : undefined
      if (why) return new Response(of('anthropic').errorBody('invalid_request_error', why), { status: 400 })
    }
    signed.set(`c2lnbmF0dXJl${n}`, body.model)
    // The name of the model in the answer is another one, as for an alias.
    const calls = n === 0 ? [{ id: 'call_1', name: 'file_list', args: ['{"path":"."}'] }] : undefined
    return sends(of('anthropic').events({ ...words(n), ...(calls ? { text: ['\n\n'], calls } : {}) }))
  })
}

const thoughts = (asked: Asked | undefined) => [...(asked?.text ?? '').matchAll(/"thinking":"thought (\d)"/g)].map(([, n]) => Number(n))

test('thinking goes back only to the model that made it, by -c -m, /model, a changed configuration and a fallback', async () => {
  const far = vendor()
  try {
    using at = nest()
    const env = { ANTHROPIC_API_KEY: 'sk-ant-planted-0123456789' }
    const model = (name: string, id: string) =>
      `[providers.models.${name}]\nkind = "anthropic"\nmodel = "${id}"\nbase_url = "${far.url}"\nmax_retries = 0\n`
    const config = (first: string, more = '') =>
      at.config(`default_provider = "far"\nworkspace_dir = "${at.workspace}"\n${model('far', first)}${model('other', 'model-b')}${more}`)
    const says = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await at.run(['agent', ...args], { env })
      expect([code, stderr.includes('400')]).toEqual([0, false])
      expect(stdout).toContain('Answer')
    }
    config('model-a')
    await says('-m', 'look')
    expect(thoughts(far.asked[1])).toEqual([0])
    expect(far.asked[1]?.text).not.toContain('"text":"\\n\\n"')
    await says('-c', '-m', 'again')
    expect(thoughts(far.asked[2])).toEqual([0, 1])
    await says('-c', '-m', 'other', '--model', 'other')
    expect(thoughts(far.asked[3])).toEqual([])
    await says('-c', '-m', 'back')
    expect(thoughts(far.asked[4])).toEqual([0, 1, 2])
    config('model-c')
    await says('-c', '-m', 'changed')
    expect(thoughts(far.asked[5])).toEqual([])
    config(
      'model-a',
      '[providers.models.both]\nkind = "reliable"\nproviders = ["gone", "far"]\n'.concat(
        model('gone', 'model-a').replace(far.url, 'http://127.0.0.1:1/v1'),
      ),
    )
    await says('-c', '-m', 'fallback', '--model', 'both')
    expect(thoughts(far.asked[6])).toEqual([0, 1, 2, 4])
    const talk = await at.terminal(
      ['agent', '-c'],
      [
        ['> ', '/model other\r'],
        ['other/model-b', 'hello\r'],
        ['Answer 7', '/exit\r'],
      ],
      { env },
    )
    expect(talk.stdout).toContain('Answer 7.')
    expect(thoughts(far.asked[7])).toEqual([3])
  } finally {
    far.stop()
  }
}, 120_000)
