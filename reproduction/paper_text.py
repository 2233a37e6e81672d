"""What the paper prints and what is wrong in it: its three tables, its theorems with their state, and the errata."""

from __future__ import annotations

from typing import NamedTuple

CITATION = (
    "J. Rector-Brooks, J.-K. Wang and B. Mozafari. Revisiting Projection-Free Optimization for Strongly Convex "
    "Constraint Sets. Proceedings of the AAAI Conference on Artificial Intelligence 33 (AAAI-19), 2019."
)


class Theorem(NamedTuple):
    """A theorem or lemma; ``evidence`` names claims, as experiment and key, whose verdicts are shown."""

    name: str
    statement: str
    proof: str
    repair: str
    evidence: tuple[tuple[str, str], ...]
    note: str


THEOREMS = (
    Theorem(
        "Lemma 1",
        "‖x_p - x_q‖ ≤ ‖p - q‖ / (α(‖p‖ + ‖q‖))",
        "Adding the two inequalities gives ‖p/‖p‖ - q/‖q‖‖/α, which is up to twice the printed side.",
        "A factor 2 on the right, which is attained; α is that of the Euclidean norm.",
        (("lemmas", "lemma-1"), ("lemmas", "lemma-1-repaired")),
        "Refuted as printed; only a constant changes.",
    ),
    Theorem(
        "Lemma 2",
        "‖∇h(w)‖ ≥ δ√(π/2d) with probability 1 - δ",
        "The factor θ is lost; the step Pr(ξ₁ ≤ c) ≤ δ is false, as ξ₁ is symmetric.",
        "‖∇h(w)‖ ≥ θδ√(π/2d) for one fixed w and d ≥ 3, by the two-sided step.",
        (("lemmas", "lemma-2"), ("lemmas", "lemma-2-step")),
        "Refuted as printed; the repaired bound vanishes with ε.",
    ),
    Theorem(
        "Theorem 1",
        "PA on h: f(w_t) - f* = O(dL/(α²δ²t²)) with probability 1 - δ",
        "Uses Lemma 2 for all p_t, which depend on ξ; the factor G² of the gradients is dropped.",
        "If ‖p_t‖ ≥ θδ√(π/2d) held for all t: O(G²dL/(α²δ²θ²t²)), which scales with f as it must. With θ ≤ ε/4D that "
        "is t = O(ε^-3/2), worse than the O(1/ε) known for plain Frank-Wolfe. With an optimum on the boundary and "
        "g = min ‖p_t‖ > 0, O(LG²/(α²g²t²)) needs no perturbation.",
        (("theorem_1", "rate"), ("lemmas", "p-t"), ("pa_rate", "rate"), ("curved_sets", "rate")),
        "Down to ε it is unrefuted; for t → ∞ it is unproved, and so is the line of Table 1.",
    ),
    Theorem(
        "Theorem 2",
        "SPA: E f(w_t) - f* = O(dL²(D² + σ) log t/(α²δ²t²))",
        "As for Theorem 1; the expectation of ‖v_t - v_t₋₁‖², which depends on the sample, is dropped.",
        "As for Theorem 1.",
        (("stochastic_rate", "stream"), ("stochastic_rate", "perturbed")),
        "The early flat part is that of option B without noise.",
    ),
    Theorem(
        "Theorem 3",
        "FWLS is within ε after O(max(2κ/(θε²), 8Lκ/(θε³))) iterations",
        "Case 2 loses α and a θ, and has 16L for 8L.",
        "8Lκ/(αθ²ε³) in the second term.",
        (("quasi_convex", "count"), ("quasi_convex", "definition")),
        "A rate of t^-1/3 for ε < 1; the -1/2 of Section 7.1 is for ε > 1.",
    ),
    Theorem(
        "Theorem 4",
        "min k_s ≤ ℓ₁/(t min(1/2, C′)), C′ = αδ√π/(8L√(2d)), with probability 1 - δ",
        "C′ lacks θ: ‖∇h‖ ≥ c is needed at all iterates, and c ≤ is written for c ≥.",
        "C′ = αθδ√π/(8L√(2d)): with θ = ε/4D, t = O(ε^-2), the rate that was known.",
        (("non_convex", "gap"), ("non_convex", "bound"), ("non_convex", "bound-mean")),
        "Unproved beyond the known rate.",
    ),
    Theorem(
        "Lemma 3",
        "f(w_t₊₁) ≤ f(w_t) + (γ_t/2)⟨w* - w_t, ∇f(w_t)⟩",
        "Quoted; no fault found.",
        "None needed.",
        (("lemmas", "lemma-3"),),
        "Supported.",
    ),
)

ERRATA = (
    ("Lemma 1", "The right side lacks a factor 2."),
    ("Lemma 1, proof", "‖x_q - x_p - p/(α‖p‖)‖ should read ‖x_q - x_p + p/(α‖p‖)‖; U is ‖u‖ = 1."),
    ("Lemma 2", "The bound on ‖∇h(w)‖ lacks the factor θ; it is for a fixed w."),
    ("Lemma 2, proof", "Pr(ξ₁ ≤ c) ≤ δ is at least 1/2 for c > 0; it must be two-sided, and then needs d ≥ 3."),
    ("Lemma 2, proof", "Beta(1/2, (d-1)/2) is the distribution of ξ₁², not of ξ₁."),
    ("Lemma 2, chain", "The first line should read f(w_t) ≤ h(w_t) + θ‖w_t‖ (it has f for h)."),
    ("Theorem 1", "G² and θ² are missing; the constant is G²dL/(α²δ²θ²)."),
    ("Theorem 1, proof", "Σ 1/i² is π²/6, not π/6."),
    ("Theorem 1, proof", "Lemma 2 is applied to all p_t, whose iterates depend on ξ."),
    ("Section 4.1", "Equations (1) to (3) average squared norms, the text around them norms; v_t is an argmin."),
    (
        "Section 4.2",
        "SPA's gradient is a sum over the sample: with θξ of a mean, h is not the function it descends on.",
    ),
    ("Theorem 2, proof", "√(E[‖·‖]²) should be √(E‖·‖²); the expectation of ‖v_t - v_t₋₁‖² is dropped."),
    ("Theorem 3, case 2", "16L should be 8L (γ_t/2 = α‖∇f‖/(8L)); then α and θ² are lost in the count."),
    ("Theorem 3", "The ball of the definition is around w*, not w; the slower rate is t^-1/3, where ε < 1."),
    ("Theorem 3, example", "φ(z) = 1 for z ≥ 0 has no gradient and is not smooth, as the theorem asks."),
    ("Theorem 4, proof", "c_t should be (w_t + v_t)/2 + (α/8)‖w_t - v_t‖² u_t."),
    ("Theorem 4, proof", "“c ≤ δ√π/√(2d)” should be “c ≥ θδ√π/√(2d)”."),
    ("Theorem 4, proof", "p_t - w_t should be v_t - w_t; ⟨u_t, ∇f⟩ = -‖∇f‖_*, not u_t; ∇‖f‖_* is ‖∇f‖_*."),
    ("Algorithm 1", "Option B is no line search: it minimises an upper bound and needs L."),
    ("Algorithm 2", "Option A is Lan's primal-dual averaging; his PA is option B."),
    ("Section 2", "On an l₂ ball FW is normalised gradient descent that also shrinks w by 1 - γ."),
    ("Sections 1, B.2", "Schatten-2 is the Frobenius norm: its projection and oracle need no SVD."),
    ("Appendix B.2", "A projection onto l∞ is a clip, which is vectorised."),
    ("Appendix B.4", "At r = 12,000 the minimum of completion is 0: “within 2 % of the minimum” is undefined."),
    ("Appendix B.1", "The printed squared sigmoid loss is the sigmoid; with 1/n its error cannot exceed 1."),
    ("Appendix B.1, B.7", "The bi-weight task is robust regression in the tables and classification in the text."),
    ("Source of 3.2", "The group oracle has ‖C_i‖_s where ‖C_i‖_z belongs (not typeset)."),
)


class TableRow(NamedTuple):
    """A row of the paper's Tables 1 to 3 with what we have beside it; ``evidence`` as for theorems."""

    cells: tuple[str, ...]
    ours: str
    evidence: tuple[tuple[str, str], ...] = ()


TABLES: dict[str, tuple[str, tuple[str, ...], tuple[TableRow, ...]]] = {
    "Table 1": (
        "Contributions (the rows of this paper)",
        ("loss", "assumption on the loss", "set", "rate", "line search"),
        (
            TableRow(
                ("convex", "none", "strongly convex", "O(1/t²) with high probability", "no"),
                "unproved; -2 is measured",
                (("pa_rate", "rate"), ("curved_sets", "rate")),
            ),
            TableRow(
                ("quasi-convex", "locally Lipschitz, ‖∇f‖ bounded below", "strongly convex", "O(min(t^-1/3, t^-1/2))",
                 "yes"),
                "the slower of the two, with α and θ² in the count",
                (("quasi_convex", "count"), ("quasi_convex", "below-bound")),
            ),
            TableRow(
                ("not convex", "none", "strongly convex", "O(1/t) with high probability", "yes"),
                "unproved beyond O(1/√t)",
                (("non_convex", "gap"),),
            ),
        ),
    ),
    "Table 2": (
        "Losses and sets of the experiments (Table 3, the appendix's, adds the logistic loss)",
        ("convexity", "loss", "constraint", "task"),
        (
            TableRow(("convex", "quadratic", "l_p", "regression"), "run, on generated data of the paper's size"),
            TableRow(("convex", "observed quadratic", "Schatten-p", "completion"), "run"),
            TableRow(("quasi-convex", "squared sigmoid", "l_p", "classification"), "run, the sum over the samples"),
            TableRow(("not convex", "bi-weight", "l_p", "robust regression"), "run, and classification as in the text"),
        ),
    ),
    "Table 3": (
        "The row that the appendix adds to Table 2",
        ("convexity", "loss", "constraint", "task"),
        (TableRow(("convex", "logistic", "l_p", "classification"), "run"),),
    ),
}  # fmt: skip

#: What the paper leaves open and this reproduction varies.
CHOICES = (
    ("radius", "unstated but for 12,000", "a grid for every problem"),
    ("window of a slope", "unstated", "three or four windows of one decade"),
    ("start", "unstated", "the centre, 10⁻⁸ r around it, and random points"),
    ("scaling of features", "unstated", "standardised and raw"),
    ("encoding of Adult", "unstated (14 features)", "one-hot, with a level dropped, numbers scaled to [0, 1]"),
    ("line search", "unstated", "exact, a search on values with a relative tolerance, option B"),
    ("intercept", "free, though no oracle is bounded on it", "minimised out; for the bi-weight also left out"),
    ("step of GD and SGD", "unstated", "0.1/L to 1.9/L; three constants for SGD"),
    ("f of ε", "the mean for the sigmoid, else sums", "the sum where ε > 1 is plotted"),
)
