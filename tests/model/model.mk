# The slab's protocol, model-checked (spin).
$(eval $(call ut_suite,model,tests/model/check $(BUILD)/tests/model))
