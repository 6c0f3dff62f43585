import { expect, test } from 'bun:test'
import { findClaims } from '../../src/host/records/claims/find-claims.ts'
import { mayClaim } from '../../src/host/run/conversation.ts'
import wordings from './wordings.json'

const { none, ...claims } = wordings

test.each(Object.entries(claims))(
  'claims of the kind %s are found in many wordings, and the cheap first test lets them through',
  (kind, texts) => {
    const isFound = (text: string) => mayClaim(text) && findClaims(text).some((claim) => claim.kind === kind)
    expect(texts.filter((text) => !isFound(text))).toEqual([])
    expect(texts.length).toBeGreaterThan(40)
  },
)

test('advice, plans, failures, descriptions, questions and what others did are no claims', () => {
  expect(none.filter((text) => findClaims(text).length > 0)).toEqual([])
})
