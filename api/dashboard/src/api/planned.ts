// The answer to a question for a plan, or why there is none.

import { Problem, type Posted } from './client';
import type { PlanAnswer } from './types';

export function planned(reply: Posted<'/v1/plans'>): PlanAnswer {
  if ('status' in reply && reply.status === 'planned') return reply;
  throw new Problem('refused', 'Nothing measured supports an answer', 'reason' in reply ? reply.reason : '');
}
